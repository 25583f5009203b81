"""What jobs have used is kept by a real server, without a monitor, through its death, and after the end."""

from __future__ import annotations

from typing import Any

from tests.support.rig import Rig, single

BUSY = 'i=0; while [ ! -e "$OUTPUT_DIR/go" ]; do i=$((i+1)); done'


def read_jobs(rig: Rig) -> list[dict[str, Any]]:
    """Return the samples of the experiment, each as it was measured."""
    found: list[dict[str, Any]] = rig.get("/v1/experiments/1/samples", step=1)["jobs"]
    return found


def wait_for_more(rig: Rig, count: int) -> dict[str, Any]:
    """Wait until the job has more samples than these, and return them."""

    def look() -> dict[str, Any] | None:
        jobs = read_jobs(rig)
        return jobs[0] if jobs and len(jobs[0]["time"]) > count else None

    return rig.wait(f"more than {count} samples", look)


def test_samples_outlive_the_server_and_the_experiment(rig: Rig) -> None:
    rig.submit(single(BUSY))
    before = wait_for_more(rig, 1)
    rig.kill()
    rig.start()
    count = len(before["time"])
    assert read_jobs(rig)[0]["time"][:count] == before["time"], "a killed server loses no sample"
    more = wait_for_more(rig, count)
    assert any(value > 0 for value in more["cpu"])
    assert any(value > 0 for value in more["mem_used"])
    rig.go_file("1").touch()
    rig.wait_closed("1")
    (ended,) = read_jobs(rig)
    assert ended["time"][: len(more["time"])] == more["time"]
    assert ended["state"] == "FINISHED"
