"""`status`, `show`, `logs`, `monitor` and `kill`, with the fake server."""

from __future__ import annotations

import json
import re

import pytest

from riseml.cli.commands.experiments import TEST_PROJECT
from tests.unit.analysis.live_samples import SAMPLE
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer, finish, make_experiment, make_job


def test_status_lists(riseml: Riseml, fake_server: FakeServer) -> None:
    assert riseml("status").out == "No experiment is running; `riseml status -a` lists all.\n"
    fake_server.experiments["4"] = make_experiment()
    lines = riseml("status").out.splitlines()
    assert lines[0].split() == ["ID", "PROJECT", "STATE", "AGE", "TIME", "TYPE"]
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
    assert len(riseml("status", "-n", "0", live=True).out.splitlines()) == 1203, "0: all, also on a terminal"
    assert riseml("status", "-n", "-1").code == 2


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


LAST_LINES = ["step 41", "\x1b[2JMemoryError\x07"]


def test_status_shows_the_last_lines_of_a_failed_job(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.experiments["4"] = make_experiment(state="FAILED", cause="worker.1", last_lines=LAST_LINES)
    shown = "\nLast lines of 4.worker.1:\n  step 41\n  MemoryError\\x07\n"
    assert riseml("status", "4").out.endswith(shown)
    assert riseml("status", "4", "-l").out.endswith(shown)


def test_status_shows_the_advice_about_a_failed_job(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.experiments["4"] = make_experiment(state="FAILED", cause="train", last_lines=["a"], advice="do this")
    assert riseml("status", "4").out.endswith("\nLast lines of 4.train:\n  a\nAdvice: do this\n")


def test_kill_without_an_id_names_what_goes_on(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.experiments = {"11": make_experiment("11"), "12": make_experiment("12", state="KILLED")}
    result = riseml("kill")
    assert result.out == "experiment 12 has already ended: KILLED\n"
    assert "still running in ai-toaster: 11; `riseml kill 11` ends what is named" in result.err


def test_logs_of_some_jobs_request_only_these(riseml: Riseml, fake_server: FakeServer) -> None:
    finish(fake_server, state_name="FAILED")
    result = riseml("logs", "4.worker", "--no-follow")
    assert result.code == 0
    assert any(question.startswith("GET /experiments/4.worker/logs?follow=false") for question in fake_server.asked)


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


def test_monitor_without_an_id_shows_everything_that_runs(riseml: Riseml, fake_server: FakeServer) -> None:
    others = [SAMPLE | {"id": "5.worker.1", "project": "bread", "gpus": 2, "gpu": 87.0}, SAMPLE]
    fake_server.answers["GET /samples"] = (200, {"samples": others})
    result = riseml("monitor", "--once")
    assert [row.split()[0] for row in result.out.splitlines()] == ["ID", "5.worker.1", "4.master"]
    assert "87 % of 2 GPUs" in result.out
    fake_server.answers["GET /samples"] = (200, {"samples": []})
    assert riseml("monitor", "--once").out == "No job is running; `riseml status` shows what waits.\n"


def test_monitor_shows_gpus_by_its_letter(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["GET /gpus"] = (200, {"gpus": [], "troubles": []})
    assert riseml("monitor", "-g", "--once").out == riseml("monitor", "--gpu", "--once").out
    assert fake_server.asked[-1] == "GET /gpus"


def test_kill(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.experiments["4"] = make_experiment()
    assert riseml("kill").out == "killed experiment 4\n"
    assert "POST /experiments/4/kill" in fake_server.asked
    fake_server.experiments["5"] = make_experiment("5", state="FINISHED")
    result = riseml("kill", "5", "9", "4", "-f")
    assert result.out == "experiment 5 has already ended: FINISHED\nkilled experiment 4\n"
    assert "there is no experiment 9" in result.err
    assert result.code == 3
    fake_server.experiments["144"] = make_experiment("144", type="set", experiments=[make_experiment("144.1")])
    assert riseml("kill", "144").out == "killed series 144\n"
    assert json.loads(riseml("kill", "144", "--json").out)["kills"][0]["type"] == "set"


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
