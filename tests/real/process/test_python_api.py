"""A program that runs experiments by `import riseml`: with jobs as processes, and with containers."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import riseml
from riseml import aio
from tests.support.rig import Rig, single
from tests.support.waiting import DEADLINE, wait_for

MODULE = """
import os, riseml

def train(epochs, lr=0.1, message=""):
    for step in range(epochs):
        riseml.report(step=step, loss=lr / (step + 1))
    print("trained", epochs, "epochs {{lr}}")
    return {"epochs": epochs, "lr": lr, "text": "{{lr}}"}

def fail():
    return object()
"""

PIPELINE = """
import riseml, training
points = [{"epochs": n, "lr": 0.5} for n in (1, 2, 3)]
losses = [value["epochs"] for value in riseml.map(training.train, points, concurrency=3).wait(120).returned()]
run = riseml.submit(training.train, max(losses), lr=2).wait(120)
print(run.returned()["epochs"], run.metrics()["loss"])
"""


BOTH = pytest.mark.parametrize(
    "project", [pytest.param("docker_rig", marks=pytest.mark.engine), "process_rig"], indirect=True
)


@pytest.fixture
def project(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory of a program: a project with a module, and the server of a rig."""
    rig: Rig = request.getfixturevalue(getattr(request, "param", "process_rig"))
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "riseml.yml").write_text(single("echo lr is {{lr}} > $OUTPUT_DIR/said", parameters={"lr": 0.5}))
    (folder / "training.py").write_text(MODULE)
    for name, value in rig.environ().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    sys.modules.pop("training", None)


def test_a_run_from_its_submission_to_its_output(project: Path) -> None:
    told: list[str] = []
    run = riseml.submit("riseml.yml", parameters={"lr": 0.25}, message="by a program", tell=told.append).wait(120)
    assert (run.state, run.parameters, run.view()["note"]) == ("FINISHED", {"lr": "0.25"}, "by a program")
    assert told[0].startswith("Syncing project (")
    assert run.output.read_text("said") == "lr is 0.25\n"
    assert "said" in [file.path for file in run.output.files()]
    assert (run.output.download("said", project / "copy")).read_text() == "lr is 0.25\n"
    assert (run.output.download(target=project / "all") / "said").exists()
    again = run.rerun({"lr": "7"}).wait(120)
    assert again.parameters == {"lr": "7"}
    assert riseml.get(run.id).annotate(tags=["first"]).view()["tags"] == ["first"]
    assert [found.id for found in riseml.runs(tag="first")] == [run.id]
    assert [found.id for found in riseml.runs(limit=1)] == [again.id]
    compared = riseml.compare(run.id, int(again.id))
    assert "lr" in json.dumps(compared["parameters"])
    grid = riseml.submit(parameters={"lr": [0.1, "1e-3"]}).wait(120)
    assert [part.parameters["lr"] for part in grid.experiments] == ["0.1", "1e-3"]
    assert grid.results().to_pandas()["lr"].tolist() == [0.1, 0.001]


@BOTH
def test_functions_are_called_by_their_path(project: Path) -> None:
    import training  # type: ignore[import-not-found]  # the fixture writes it

    run = riseml.submit(training.train, 2, lr=1).wait(120)
    assert run.returned() == {"epochs": 2, "lr": 1, "text": "{{lr}}"}
    assert run.metrics() == {"loss": 0.5}
    assert [(point.step, point.value) for point in run.curve("loss")] == [(0, 1.0), (1, 0.5)]
    assert "trained 2 epochs {{lr}}" in [line.text for line in run.logs() if line.job == f"{run.id}.train"]
    failed = riseml.submit(training.fail)
    with pytest.raises(riseml.ExperimentFailed, match="FAILED: exit code 1") as raised:
        failed.wait(120)
    assert "training.fail returned what JSON cannot hold" in raised.value.__notes__[0]
    assert failed.wait(120, check=False).state == "FAILED"
    done = subprocess.run([sys.executable, "-c", PIPELINE], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("3 0.6666666666666666\n", ""), "a pipeline prints what it prints itself"


@BOTH
def test_a_job_that_runs_is_entered_forwarded_and_killed(project: Path) -> None:
    (project / "riseml.yml").write_text(single("echo up; exec python3 -m http.server 8765 --bind 127.0.0.1"))
    run = riseml.submit()
    first = next(iter(run.logs(timeout=120)))
    assert (first.text, first.stream) == ("up", "stdout") or first.job.endswith(".build")
    with pytest.raises(TimeoutError, match=f"experiment {run.id} has not ended within 0.5 s; it goes on"):
        run.wait(0.5)
    wait_for("RUNNING", lambda: run.state == "RUNNING" or None, DEADLINE)
    printed = run.exec(["sh", "-c", "cat; echo no >&2; exit 3"], stdin=b"yes")
    assert (printed.exit_code, printed.stdout, printed.stderr) == (3, b"yes", b"no\n")

    async def enter_from_a_cell() -> int:
        return run.exec(["true"]).exit_code

    assert asyncio.run(enter_from_a_cell()) == 0, "a cell of a notebook is called in a loop"

    def read_page() -> bytes | None:
        with run.forward(8765) as forwarding:
            try:
                with urllib.request.urlopen(forwarding.url + "/training.py", timeout=10) as answer:
                    return bytes(answer.read())
            except OSError:  # the program in the job does not listen yet
                return None

    assert wait_for("the server in the job", read_page, DEADLINE) == MODULE.encode()
    assert run.kill().wait(60, check=False).state == "KILLED"
    with pytest.raises(riseml.Interrupted, match=f"experiment {run.id} KILLED"):
        run.wait(60)


def test_fifty_runs_are_awaited_together_and_one_wait_is_left(project: Path) -> None:
    import training

    async def run_all() -> None:
        grid = await aio.submit(parameters={"lr": list(range(46))}, settings={"train.concurrency": 8})
        calls = [await aio.submit(riseml.call(training.train, n, message="hi"), message="a note") for n in range(3)]
        slow = await aio.submit(settings={"train.run": "sleep 600"})
        runs = [aio.AsyncRun(part) for part in grid.run.experiments] + calls
        waiting = asyncio.create_task(slow.wait())
        assert len(await asyncio.gather(*(run.wait(300) for run in runs))) == 49
        assert [(await call.returned())["epochs"] for call in calls] == [0, 1, 2]
        lines = [line.text async for line in calls[1].logs()]
        assert "trained 1 epochs {{lr}}" in lines
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await slow.state() in ("RUNNING", "PENDING", "STARTING"), "it goes on"
        await (await slow.kill()).wait(60, check=False)

    asyncio.run(run_all())


def test_a_server_that_is_killed_while_a_program_waits_loses_nothing(project: Path, process_rig: Rig) -> None:
    run = riseml.submit(settings={"train.run": "'echo one; while ! test -e go; do sleep 0.05; done; echo two'"})
    lines = run.logs(timeout=120)
    seen = [next(lines)]
    while seen[-1].text != "one":
        seen.append(next(lines))
    process_rig.kill()
    process_rig.start()
    run.exec(["touch", "go"])
    assert [line.text for line in lines if line.stream == "stdout"] == ["two"]
    assert run.wait(60).state == "FINISHED"
