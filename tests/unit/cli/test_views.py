"""`status`, `logs`, `monitor` and `kill`, in process, with the fake server."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest

from riseml.cli.commands.experiments import TEST_PROJECT
from riseml.cli.output.printer import Printer
from tests.support.screen import read_screen
from tests.unit.cli.commands.test_results import make_metric
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import LOST, FakeServer, finish, make_experiment, make_job, make_search
from tests.unit.results.live_samples import SAMPLE


def test_status_lists(riseml: Riseml, fake_server: FakeServer) -> None:
    assert riseml("status").out == "No experiment is running; `riseml status -a` lists all.\n"
    fake_server.experiments["4"] = make_experiment()
    lines = riseml("status").out.splitlines()
    assert lines[0].split() == ["ID", "PROJECT", "STATE", "AGE", "TYPE"]
    assert lines[1].split()[:3] == ["4", "ai-toaster", "RUNNING"]
    assert json.loads(riseml("status", "--json").out) == {"experiments": [make_experiment()]}
    riseml("status", "-a")
    assert fake_server.asked[-1] == "GET /experiments?all=true&limit=500"


def test_status_lists_the_newest_and_says_that_there_are_more(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.experiments = {str(number): make_experiment(str(number)) for number in range(1, 1203)}
    assert len(json.loads(riseml("status", "-a", "--json").out)["experiments"]) == 1202, "in three pages"
    assert len([path for path in fake_server.asked if path.startswith("GET /experiments?")]) == 3
    assert len(riseml("status", "-a").out.splitlines()) == 1203
    *rows, note = riseml("status", "-a", "--last", "2").out.splitlines()
    assert [row.split()[0] for row in rows] == ["ID", "1201", "1202"]
    assert note == "These are the newest 2; `--last N` lists more of them."
    *rows, note = riseml("status", live=True).out.splitlines()
    assert (len(rows), note) == (101, "These are the newest 100; `--last N` lists more of them.")
    assert len(riseml("status", "-n", "1202").out.splitlines()) == 1203
    assert riseml("status", "-n", "0").code == 2


def test_status_counts_no_experiment_that_it_does_not_list(riseml: Riseml, fake_server: FakeServer) -> None:
    for number in range(1, 10):
        tests = {"project": TEST_PROJECT, "state": "FINISHED"} if number > 3 else {}
        fake_server.experiments[str(number)] = make_experiment(str(number), **tests)
    rows = riseml("status", "-a", "--last", "2").out.splitlines()
    assert [row.split()[0] for row in rows[1:]] == ["2", "3", "These"]
    rows = riseml("status", "-a", "--last", "3").out.splitlines()
    assert [row.split()[0] for row in rows[1:]] == ["1", "2", "3"]


def test_ended_system_tests_are_not_listed(riseml: Riseml, fake_server: FakeServer) -> None:
    tests = {"project": "riseml-system-test"}
    fake_server.experiments = {
        "4": make_experiment("4", state="FINISHED", **tests),
        "5": make_experiment("5", **tests),
        "6": make_experiment("6", state="FAILED"),
    }
    assert [row.split()[0] for row in riseml("status", "-a").out.splitlines()] == ["ID", "5", "6"]
    assert [one["id"] for one in json.loads(riseml("status", "-a", "--json").out)["experiments"]] == ["5", "6"]
    assert "State: FINISHED" in riseml("status", "4").out


def test_status_of_one(riseml: Riseml, fake_server: FakeServer) -> None:
    failed = make_job("4.worker.1", state="FAILED", reason="OUT_OF_MEMORY", exit_code=137, signal="SIGKILL")
    failed["message"] = "exit code 137 (SIGKILL), out of memory"
    fake_server.experiments["4"] = make_experiment(
        state="FAILED", cause="worker.1", jobs=[make_job("4.master"), failed]
    )
    result = riseml("status", "4")
    roles = "Framework Config: master: 1, worker: 1"
    for shown in ("ID: 4", "Type: Experiment", "State: FAILED", "Cause: 4.worker.1", "Framework: tensorflow", roles):
        assert f"{shown}\n" in result.out
    row = next(one for one in result.out.splitlines() if one.startswith("4.worker.1  "))
    assert row.split()[:6] == ["4.worker.1", "FAILED", "local", "1", "SIGKILL", "OUT_OF_MEMORY"]
    assert json.loads(riseml("status", "4", "--json").out) == fake_server.experiments["4"]
    assert riseml("show", "4").out == result.out
    assert json.loads(riseml("show", "4", "--json").out) == fake_server.experiments["4"]


def test_show_takes_one_view_at_a_time(riseml: Riseml) -> None:
    result = riseml("show", "4", "--capsule", "--saved")
    assert result.code == 2
    assert result.err.splitlines()[0] == "error: `--capsule` and `--saved` are two views"


LAST_LINES = ["step 41", "\x1b[2JMemoryError\x07"]


def test_status_shows_the_last_lines_of_a_failed_job(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.experiments["4"] = make_experiment(state="FAILED", cause="worker.1", last_lines=LAST_LINES)
    shown = "\nLast lines of 4.worker.1:\n  step 41\n  MemoryError\\x07\n"
    assert riseml("status", "4").out.endswith(shown)
    assert riseml("status", "4", "-l").out.endswith(shown)


def test_status_shows_the_advice_about_a_failed_job(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.experiments["4"] = make_experiment(state="FAILED", cause="train", last_lines=["a"], advice="do this")
    assert riseml("status", "4").out.endswith("\nLast lines of 4.train:\n  a\nAdvice: do this\n")


@pytest.mark.parametrize("words", ["train", "logs 4", "train -l"])
def test_the_end_of_a_failed_experiment_shows_its_last_lines(
    riseml: Riseml, fake_server: FakeServer, words: str
) -> None:
    finish(fake_server, state_name="FAILED", exit_code=7, message="exit code 7", cause="worker.1")
    said = [str(number) for number in range(15)]
    fake_server.experiments["4"] |= {"state": "FAILED", "cause": "worker.1", "last_lines": said}
    shown = riseml(*words.split()).out
    assert shown.count("\nLast lines of 4.worker.1:\n" + "".join(f"  {text}\n" for text in said[-10:])) == 1
    assert "Output: /output/paul/ai-toaster/4\n" in shown


def test_status_of_a_set(riseml: Riseml, fake_server: FakeServer) -> None:
    members = [make_experiment(f"144.{number}", parameters={"lr": f"1e-{number}", "n": "2"}) for number in (1, 2)]
    fake_server.experiments["144"] = make_experiment("144", type="set", jobs=[], experiments=members)
    lines = riseml("status", "144").out.splitlines()
    assert lines[-3].split() == ["EXP", "ID", "STATE", "AGE", "PARAMS"]
    assert lines[-1].startswith("144.2   RUNNING")
    assert lines[-1].endswith("  lr=1e-2"), "what differs"
    assert "Parameters: n=2" in lines, "what all members have alike"


def test_the_long_list_counts_jobs_without_the_build_and_experiments_of_a_set(
    riseml: Riseml, fake_server: FakeServer
) -> None:
    jobs = [make_job("4.build", state="FINISHED"), make_job("4.master")]
    members = [
        make_experiment("144.1", parameters={"decay": "0.5", "lr": "0.1"}, state="FAILED"),
        make_experiment("144.2", parameters={"decay": "0.5", "lr": "0.2"}, jobs=[make_job("144.2.train")]),
    ]
    fake_server.experiments = {
        "4": make_experiment("4", jobs=jobs),
        "144": make_experiment("144", type="set", jobs=[], parameters={}, experiments=members),
    }
    rows = {row.split()[0]: row for row in riseml("status", "-l").out.splitlines()}
    assert "1/1 run" in rows["4"]
    assert "1/2 ended" in rows["144"]
    assert rows["144"].endswith("decay=0.5")
    assert rows["144.2"].endswith("  lr=0.2")


def test_kill_without_an_id_names_what_goes_on(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.experiments = {"11": make_experiment("11"), "12": make_experiment("12", state="KILLED")}
    result = riseml("kill")
    assert result.out == "experiment 12 has already ended: KILLED\n"
    assert "still running in ai-toaster: 11; `riseml kill 11` ends what is named" in result.err


def test_status_watch_ends_with_the_experiment(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.experiments["4"] = make_experiment(state="FINISHED", closed=True)
    shown = read_screen(riseml("status", "4", "-w", live=True).out, 80, 24)
    assert shown[:2] == ["ID: 4", "Type: Experiment"]


@pytest.mark.parametrize("words", ["status 4 -w", "status 4 -w --json"])
def test_status_watch_survives_a_lost_server(riseml: Riseml, fake_server: FakeServer, words: str) -> None:
    fake_server.experiments["4"] = make_experiment(state="FINISHED", closed=True)
    fake_server.lost = ["GET /experiments/4"]
    result = riseml(*words.split())
    assert (result.code, result.err) == (0, LOST)
    assert "FINISHED" in result.out


def test_a_message_between_two_redraws_is_not_drawn_over() -> None:
    terminal = io.StringIO()
    printer = Printer(terminal, terminal, live=True)
    for shown in ("one", "two"):
        printer.redraw([shown])
    printer.say("Lost the riseml server")
    printer.redraw(["three"])
    printer.end_redraw()
    assert read_screen(terminal.getvalue(), 80, 24) == ["two", "Lost the riseml server", "three"]


def test_status_without_watch_fails_when_the_server_is_lost(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.experiments["4"] = make_experiment()
    fake_server.lost = ["GET /experiments/4"]
    assert riseml("status", "4").code == 5


def test_logs_without_an_id_are_those_of_the_last_experiment_of_the_project(
    riseml: Riseml, fake_server: FakeServer
) -> None:
    finish(fake_server)
    result = riseml("logs", "--tail", "5", "--since", "10m")
    assert result.code == 0
    assert "hello" in result.out
    assert "GET /experiments?all=true&project=ai-toaster&limit=1&companions=false" in fake_server.asked
    asked = next(question for question in fake_server.asked if "/logs" in question)
    assert "tail=5" in asked
    assert "since=20" in asked


@pytest.mark.parametrize(("words", "told"), [("logs 4 --tail 5", True), ("logs 4", False)])
def test_a_tail_before_the_first_output_says_why_it_is_empty(
    riseml: Riseml, fake_server: FakeServer, words: str, *, told: bool
) -> None:
    finish(fake_server)
    fake_server.experiments["4"] |= {"state": "PENDING"}
    assert ("4 is PENDING" in riseml(*words.split()).err) == told


def test_the_project_name_may_be_written_in_any_yaml(riseml: Riseml, fake_server: FakeServer, folder: Path) -> None:
    finish(fake_server)
    (folder / "riseml.yml").write_text('{"project": "toaster", "train": {"image": "x", "run": "true"}}')
    assert riseml("logs").code == 0
    assert "GET /experiments?all=true&project=toaster&limit=1&companions=false" in fake_server.asked
    (folder / "riseml.yml").write_text("train: {}\n")
    result = riseml("logs")
    assert result.code == 2
    assert "does not say `project: NAME`" in result.err
    assert "riseml validate" in result.err


@pytest.mark.parametrize("name", ["FINISHED", "FAILED", "KILLED"])
def test_logs_of_an_ended_experiment_end_with_0(riseml: Riseml, fake_server: FakeServer, name: str) -> None:
    finish(fake_server, state_name=name)
    assert riseml("logs", "4").code == 0


def test_logs_of_some_jobs_request_only_these(riseml: Riseml, fake_server: FakeServer) -> None:
    finish(fake_server, state_name="FAILED")
    result = riseml("logs", "4.worker", "--no-follow")
    assert result.code == 0
    assert any(question.startswith("GET /experiments/4.worker/logs?follow=false") for question in fake_server.asked)


def test_a_project_without_experiments_is_an_error(riseml: Riseml) -> None:
    result = riseml("logs")
    assert result.code == 3
    assert "project ai-toaster has no experiment yet" in result.err


def test_monitor_shows_what_a_job_uses_beside_what_it_asked_for(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.experiments["4"] = make_experiment()
    fake_server.answers["GET /experiments/4/samples"] = (200, {"samples": [SAMPLE]})
    head, row = riseml("monitor", "4", "--once").out.splitlines()
    names = ["ID", "STATE", "PROJECT", "CPU used/asked", "MEM used/asked", "MEM limit", "NET in", "NET out"]
    assert re.split(" {2,}", head) == [*names, "DISK write"]
    cells = ["4.master", "RUNNING", "ai-toaster", "0.372/0.5 cores", "1 GiB/512 MiB", "16 GiB", "1.21 KiB/s", "0 B/s"]
    assert re.split(" {2,}", row) == [*cells, "2.79 GiB/s"]
    assert json.loads(riseml("monitor", "4", "--once", "--json").out) == {"samples": [SAMPLE]}


def test_views_say_the_images_of_roles_where_they_differ(riseml: Riseml, fake_server: FakeServer) -> None:
    jobs = [make_job("4.learner"), make_job("4.actor.1", image="redis:7"), make_job("4.actor.2", image="redis:7")]
    fake_server.experiments["4"] = make_experiment(jobs=jobs, image="python:3.11")
    shown = riseml("status", "4").out
    assert re.findall(r"Image of (\w+): +(\S+)", shown) == [("actor", "redis:7")]
    samples = [SAMPLE | {"id": f"4.{job['name']}", "image": job["image"]} for job in jobs]
    fake_server.answers["GET /experiments/4/samples"] = (200, {"samples": samples})
    head, first, *others = riseml("monitor", "4", "--once").out.splitlines()
    assert "IMAGE" in head
    assert "python:3.11" in first
    assert all("redis:7" in row for row in others)
    found = {job["name"]: {"variables": {"A": "1"}, "hidden": [], "image": job["image"]} for job in jobs}
    fake_server.answers["GET /experiments/4/environment"] = (200, {"id": "4", "jobs": found})
    assert riseml("env", "4").out.splitlines()[:4] == ["4.learner in python:3.11", "A=1", "", "4.actor.1 in redis:7"]


GPU = {
    "host": "gpu1",
    "id": "0",
    "uuid": "GPU-838f60d9",
    "name": "NVIDIA A100-SXM4-40GB",
    "driver": "535.129.03",
    "bus": "00000000:07:00.0",
    "mem_total": 40 * 2**30,
    "mem_used": 38 * 2**30,
    "percent": 97.0,
    "temperature": 68.0,
    "power": 391.2,
    "power_limit": 400.0,
    "jobs": ["4.worker.1"],
}
UNKNOWN_GPU = GPU | dict.fromkeys(["mem_total", "mem_used", "percent", "temperature", "power", "power_limit"])


def test_monitor_shows_what_each_gpu_does(riseml: Riseml, fake_server: FakeServer) -> None:
    found = {"gpus": [GPU, UNKNOWN_GPU | {"id": "1", "jobs": []}], "troubles": []}
    fake_server.answers["GET /gpus"] = (200, found)
    head, first, second = riseml("monitor", "--once", "--gpu").out.splitlines()
    cells = ["HOST", "GPU", "NAME", "BUSY", "MEM Used/Total", "POWER", "TEMP", "BUS", "JOBS"]
    assert re.split(" {2,}", head) == cells
    row = ["gpu1", "0", GPU["name"], "97 %", "38.0/40.0 GiB", "391/400 W", "68 °C", GPU["bus"], "4.worker.1"]
    assert re.split(" {2,}", first) == row
    assert re.split(" {2,}", second)[3:] == ["-", "-/-", "-", "-", GPU["bus"], "-"]
    assert json.loads(riseml("monitor", "--once", "--gpu", "--json").out) == found
    models = riseml("system", "info", "-g").out
    assert "40.0 GiB" in models
    assert "535.129.03" in models


def test_a_host_whose_gpus_cannot_be_read_is_named(riseml: Riseml, fake_server: FakeServer) -> None:
    trouble = {"host": "gpu1", "message": "nvidia-smi: Failed to initialize NVML\x1b[2J"}
    fake_server.answers["GET /gpus"] = (200, {"gpus": [], "troubles": [trouble]})
    for words in (["monitor", "--once", "--gpu"], ["system", "info", "-g"]):
        shown = riseml(*words)
        assert "No GPU is known on any host" in shown.out
        assert "gpu1: nvidia-smi: Failed to initialize NVML" in shown.out + shown.err
        assert "\x1b" not in shown.out + shown.err


def test_monitor_without_an_id_shows_everything_that_runs(riseml: Riseml, fake_server: FakeServer) -> None:
    others = [SAMPLE | {"id": "5.worker.1", "project": "bread", "gpus": 2, "gpu": 87.0}, SAMPLE]
    fake_server.answers["GET /samples"] = (200, {"samples": others})
    result = riseml("monitor", "--once")
    assert [row.split()[0] for row in result.out.splitlines()] == ["ID", "5.worker.1", "4.master"]
    assert "87 % of 2 GPUs" in result.out
    fake_server.answers["GET /samples"] = (200, {"samples": []})
    assert riseml("monitor", "--once").out == "No job is running; `riseml status` shows what waits.\n"


def test_monitor_ends_with_the_experiment(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.experiments["4"] = make_experiment(state="FINISHED")
    fake_server.answers["GET /experiments/4/samples"] = (200, {"samples": [SAMPLE]})
    fake_server.lost = ["GET /experiments/4/samples"]
    result = riseml("monitor", "4")
    assert (result.code, result.err) == (0, LOST)


def test_kill(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.experiments["4"] = make_experiment()
    assert riseml("kill").out == "killed experiment 4\n"
    assert "POST /experiments/4/kill" in fake_server.asked
    fake_server.experiments["5"] = make_experiment("5", state="FINISHED")
    result = riseml("kill", "5", "9", "4", "-f")
    assert result.out == "experiment 5 has already ended: FINISHED\nkilled experiment 4\n"
    assert "there is no experiment 9" in result.err
    assert result.code == 3


@pytest.mark.parametrize("answer", [True, False])
def test_kill_without_an_id_asks_the_user(
    riseml: Riseml, fake_server: FakeServer, monkeypatch: pytest.MonkeyPatch, *, answer: bool
) -> None:
    asked: list[str] = []

    def confirm(text: str, *, err: bool) -> bool:
        asked.append(text)
        return answer

    monkeypatch.setattr("typer.confirm", confirm)
    fake_server.experiments["4"] = make_experiment()
    assert riseml("kill", asks=True).code == 0
    assert asked == ["Kill experiment 4 of ai-toaster (RUNNING)?"]
    assert ("POST /experiments/4/kill" in fake_server.asked) is answer
    riseml("kill", "4", asks=True)
    riseml("kill", "-f", asks=True)
    assert len(asked) == 1


def test_status_shows_metrics(riseml: Riseml, fake_server: FakeServer) -> None:
    values = {"accuracy": (0.5, 0.25), "loss": (1 / 3,)}
    metrics = [make_metric(name, *found) for name, found in values.items()]
    fake_server.experiments["4"] = make_experiment(metrics=metrics)
    assert "Metrics: accuracy=0.25, loss=0.333333\n" in riseml("status", "4").out
    members = [make_experiment("4.1", metrics=metrics), make_experiment("4.2")]
    fake_server.experiments["4"] = make_experiment(type="set", experiments=members, jobs=[])
    rows = [line.split() for line in riseml("status", "4").out.splitlines()[-3:]]
    assert rows[0] == ["EXP", "ID", "STATE", "AGE", "accuracy", "PARAMS"]
    assert [row[-1] for row in rows[1:]] == ["0.25", "-"]
    search = make_search()
    fake_server.experiments["4"] = make_experiment(type="set", experiments=members, jobs=[], search=search)
    assert riseml("status", "4").out.splitlines()[-2].split()[-1] == "0.5"
