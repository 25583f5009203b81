"""Reports of real jobs, with Docker and as processes: from Python, from a shell, from several processes of a job."""

from __future__ import annotations

from typing import Any

from tests.support.rig import Rig, single

TRAINING = """
import os, sys, riseml
attempt = int(os.environ["RISEML_ATTEMPT"])
print("attempt", attempt)
for step in range(300):
    riseml.report(step=step, loss=1 / (step + attempt))
sys.stdout.write("bar 3/10")
riseml.report_result(accuracy=0.9 + attempt / 100)
sys.exit(0 if attempt == 2 else 7)
"""


def read_metrics(rig: Rig, name: str) -> dict[str, dict[str, Any]]:
    (found,) = rig.get(f"/v1/experiments/{name}/metrics")["experiments"]
    assert found["id"] == name
    return {metric["name"]: metric for metric in found["metrics"]}


def test_reports_of_all_attempts_are_metrics_and_no_lines(rig: Rig) -> None:
    """A retry reports on; a killed server counts on; the log has an entry of each report, if asked for."""
    run = ["python3 train.py", "printf 'riseml.report {\"by_hand\": %s}\\n' 0.5 nan oops"]
    rig.submit(
        single(run, retry=1, metrics={"began": "^attempt ([0-9]+)", "by_hand": "(never)"}), {"train.py": TRAINING}
    )
    rig.wait_closed("1")
    rig.kill()
    rig.start()
    lines = ["attempt 1", "bar 3/10", "attempt 2", "bar 3/10", 'riseml.report {"by_hand": oops}']
    assert rig.lines("1.train") == [f"1.train {line}" for line in lines]
    found = read_metrics(rig, "1")
    loss = found["loss"]
    assert (loss["count"], loss["last"], loss["last_step"], loss["attempt"]) == (600, 1 / 301, 299, 2)
    assert (loss["min"], loss["min_step"], loss["max"], loss["max_step"]) == (1 / 301, 299, 1.0, 0)
    assert (found["accuracy"]["max"], found["accuracy"]["count"]) == (0.92, 2)
    assert (found["by_hand"]["last"], found["by_hand"]["max"], found["by_hand"]["not_finite"]) == ("nan", 0.5, 1)
    assert (found["began"]["count"], found["began"]["last"]) == (2, 2)
    history = rig.get("/v1/experiments/1/metrics/history", metric="loss")
    assert (sum(bucket["count"] for bucket in history["buckets"]), len(history["buckets"]) <= 256) == (600, True)
    entries = rig.logs("1", reports="true", follow="false")
    reports = [entry for entry in entries if entry["type"] == "report"]
    assert [entry["step"] for entry in reports if "loss" in entry["values"]] == [*range(300), *range(300)]
    assert reports[-1]["values"] == {"by_hand": "nan"}
    _, second = [entry for entry in reports if entry["step"] == 7]
    middle = entries.index(second)
    assert rig.logs("1", reports="true", follow="false", cursor=entries[middle]["cursor"]) == entries[middle + 1 :]


def test_each_process_of_a_job_reports(rig: Rig) -> None:
    """The launcher marks the lines of its processes; reports are not lines."""
    section = {"version": "0.10.2", "distributed": {"worker": 2, "processes": 2}}
    program = (
        "import os, riseml\n"
        "for step in range(100):\n"
        "    riseml.report(step=step, rank=int(os.environ['JAX_PROCESS_ID']))\n"
        "print('done')\n"
    )
    rig.submit(single("python3 ranks.py", framework="jax", jax=section), {"ranks.py": program})
    assert rig.wait_closed("1")["state"] == "FINISHED", rig.lines("1")
    rank = read_metrics(rig, "1")["rank"]
    assert (rank["count"], rank["min"], rank["max"], rank["not_finite"]) == (400, 0, 3, 0)
    assert sorted(line for line in rig.lines("1") if not line.startswith("1.build ")) == [
        *("1.master [0] done", "1.master [1] done"),
        *("1.worker.1 [2] done", "1.worker.1 [3] done"),
    ]
