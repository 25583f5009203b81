"""`riseml train` from the first line to the last, in the foreground and detached."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real.e2e.console import Console, Running
from tests.support.rig import GO, gang, single
from tests.support.waiting import DEADLINE

pytestmark = pytest.mark.every_engine

JOBS = ["master", "ps.1", "worker.1", "worker.2"]

Project = Callable[..., Path]


def _go(console: Console, identity: str) -> None:
    """Let the jobs that wait with `GO` continue."""
    (Path(console.ask("status", identity)["output"]) / "go").touch()


def _wait_running(running: Running) -> str:
    """Return the ID of its experiment once all its jobs run."""
    return running.wait_for(r"^(\d+) +\| \[[^]]+\] --> RUNNING$")[1]


def test_train_prints_the_log_to_a_good_end(console: Console, project: Project) -> None:
    script = {job: f"echo from {job}; exit 0" for job in JOBS}
    project(gang(script | {"master": f"echo from master; {GO}", "ps.1": "echo from ps.1; sleep 600"}))
    with console.start("train") as running:
        _go(console, _wait_running(running))
        result = running.finish()
    assert (result.code, result.err) == (0, "")
    first, *_, last, output = result.out.splitlines()
    assert re.fullmatch(r"Syncing project \(\S+ \w+, 1 file\)\.\.\.done", first)
    assert re.fullmatch(rf"Experiment {result.id} FINISHED after \w+", last)
    assert output == f"Output: {console.home}/output/{console.ask('status', result.id)['user']}/toaster/{result.id}"
    assert {job: result.lines(job)[:1] for job in JOBS} == {job: [f"from {job}"] for job in JOBS}
    assert (result.states()[0], result.states()[-2:]) == ("CREATED", ["RUNNING", "FINISHED"])
    assert all(result.states(job)[-1] == "FINISHED" for job in JOBS)
    assert len({line.find("|") for line in result.out.splitlines()[1:-2]}) == 1, "the bars are in one column"


def test_a_failed_experiment_names_its_cause_and_shows_its_last_lines(console: Console, project: Project) -> None:
    project(gang({"worker.1": "for n in $(seq 20); do echo step $n; done; sleep 1; exit 9"}, stop_grace=1))
    result = console.run("train")
    assert result.code == 1
    end = result.out[result.out.rindex("Experiment ") :].splitlines()
    assert re.fullmatch(rf"Experiment {result.id} FAILED after \w+: {result.id}.worker.1: exit code 9", end[0])
    assert end[1] == f"Last lines of {result.id}.worker.1:"
    assert end[2:12] == [f"  step {number}" for number in range(11, 21)]
    shown = console.run("status", result.id)
    assert f"Cause: {result.id}.worker.1\n" in shown.out
    assert shown.out.endswith("  step 19\n  step 20\n")


def test_train_ends_with_130_when_a_second_command_kills_the_experiment(console: Console, project: Project) -> None:
    project(gang({}, stop_grace=1))
    with console.start("train") as running:
        identity = _wait_running(running)
        assert console.run("kill", identity).out == f"killed experiment {identity}\n"
        result = running.finish()
    assert result.code == 130
    assert result.states()[-1] == "KILLED"
    assert f"Experiment {identity} KILLED after" in result.out


def test_ctrl_c_leaves_the_log_and_logs_follows_it_to_the_end(console: Console, project: Project) -> None:
    project(gang({"master": f"echo before; {GO}; echo after", "worker.1": "exit 0", "worker.2": "exit 0"}))
    with console.start("train") as running:
        identity = _wait_running(running)
        running.wait_for("before")
        running.process.send_signal(signal.SIGINT)
        left = running.finish()
    assert left.code == 130
    assert left.err == (
        f"\nExperiment {identity} will continue in background."
        f" Type `riseml logs {identity}` to connect to the log stream again.\n"
    )
    assert {"master", "ps.1"} <= set(console.containers(running=True))
    with console.start("logs") as again:
        again.wait_for("before")
        _go(console, identity)
        result = again.finish()
    assert (result.code, result.err) == (0, "")
    assert result.lines("master")[:2] == ["before", "after"]
    assert f"Experiment {identity} FINISHED" in result.out


def test_train_detached_returns_at_once(console: Console, project: Project) -> None:
    project(single(f"echo here; {GO}"))
    result = console.run("train", "-d")
    assert (result.code, result.err) == (0, "")
    identity = result.id
    assert result.out.splitlines()[-1] == (
        f"Experiment {identity} runs in the background. Type `riseml logs {identity}` for its log."
    )
    assert identity in [one["id"] for one in console.ask("status")["experiments"]]
    _go(console, identity)
    assert console.end(identity)["state"] == "FINISHED"


def test_without_an_id_a_command_means_the_project_s_last_experiment(console: Console, tmp_path: Path) -> None:
    names = ("one", "two")
    for name in names:
        config = single(f"echo from {name}; sleep 600", stop_grace=1).replace('"toaster"', f'"{name}"')
        (tmp_path / name).mkdir()
        (tmp_path / name / "riseml.yml").write_text(config)
    ids = {name: console.run("train", "-d", where=tmp_path / name).id for name in names}
    for name in names:
        with console.start("logs", where=tmp_path / name) as running:
            running.wait_for(f"from {name}")
        (sample,) = console.ask("monitor", ids[name], "--once")["samples"]
        assert sample["id"] == f"{ids[name]}.train"
        assert console.run("kill", where=tmp_path / name).out == f"killed experiment {ids[name]}\n"
        assert console.end(ids[name])["state"] == "KILLED"
        assert console.run("kill", where=tmp_path / name).out == (f"experiment {ids[name]} has already ended: KILLED\n")


def test_monitor_ends_with_the_experiment(console: Console, project: Project) -> None:
    project(single(GO))
    identity = console.run("train", "-d").id
    with console.start("monitor", identity) as running:
        running.wait_for(rf"^{identity}\.train +RUNNING +toaster +[\d.]+/0\.1 cores +[\d.]+/\d+ MiB ")
        assert [one["id"] for one in console.ask("monitor", "--once")["samples"]] == [f"{identity}.train"]
        _go(console, identity)
        assert running.finish().code == 0
    console.end(identity)


def test_train_survives_kill_9_of_the_server(console: Console, project: Project) -> None:
    counter = 'i=0; until [ -e "$OUTPUT_DIR/go" ]; do echo line $i; i=$((i+1)); sleep 0.01; done; echo counted $i'
    project(gang({"master": counter, "worker.1": counter, "worker.2": "exit 0"}, finish_grace=DEADLINE))
    with console.start("train") as running:
        identity = _wait_running(running)
        shown = 50
        for _ in range(2):
            running.wait_for(rf"\.master .* line {shown}$")
            console.kill_server()
            shown = console.count_lines("master") + 20  # only the next server can show it
        running.wait_for(rf"\.master .* line {shown}$")
        _go(console, identity)
        result = running.finish()
    assert result.code == 0
    assert result.err == "Lost the riseml server; connecting again. The experiment goes on.\n" * 2
    for job in ("master", "worker.1"):
        *lines, counted = (line for line in result.lines(job) if line.startswith(("line ", "counted ")))
        assert lines == [f"line {n}" for n in range(int(counted.removeprefix("counted ")))]
    assert result.states().count("RUNNING") == 1


@pytest.mark.parametrize("words", [["train", "--json"], ["logs", "--json"]], ids=" ".join)
def test_json_is_one_document_a_line(console: Console, project: Project, words: list[str]) -> None:
    project(single("echo hello"))
    assert console.run("train").code == 0
    documents = [json.loads(line) for line in console.run(*words).out.splitlines()]
    entries = documents[1:] if words[0] == "train" else documents
    assert [entry["text"] for entry in entries if entry["type"] == "line"] == ["hello"]
    assert entries[-1]["type"] == "end"
