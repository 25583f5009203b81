"""Every verb, in process, against the door."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from riseml import __version__, wire
from tests.cli.conftest import Riseml
from tests.cli.door import HOSTS, LOST, Door, finish

VERBS = [
    "init",
    "validate",
    "train",
    "status",
    "logs",
    "monitor",
    "kill",
    "server",
    "system",
    "server stop",
    "system info",
]


@pytest.mark.parametrize("verb", ["", *VERBS])
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_every_verb_has_help(riseml: Riseml, capsys: pytest.CaptureFixture[str], verb: str, option: str) -> None:
    assert riseml(*verb.split(), option).code == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"Usage: {' '.join(['riseml', *verb.split()])} ")
    assert "─" not in shown


def test_nothing_at_all_shows_the_help(riseml: Riseml, capsys: pytest.CaptureFixture[str]) -> None:
    assert riseml().code == 0
    assert "Exit codes: 0 done" in capsys.readouterr().out


@pytest.mark.parametrize("group", ["server", "system"])
def test_a_group_alone_shows_its_help(riseml: Riseml, capsys: pytest.CaptureFixture[str], group: str) -> None:
    assert riseml(group).code == 0
    assert capsys.readouterr().out.startswith(f"Usage: riseml {group} ")


def test_the_version(riseml: Riseml) -> None:
    assert riseml("--version").out == f"riseml {__version__}\n"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("stats", 2, "no such command"),
        ("status --nope", 2, "no such option"),
        ("status 4x", 2, "'4x' is not an experiment ID"),
        ("status 9", 3, "there is no experiment 9"),
        ("logs 9", 3, "there is no experiment 9"),
        ("logs 4 --tail -3", 2, "--tail"),
        ("logs 4 --tail many", 2, "--tail"),
        ("logs 4 --tail 99999999999", 2, "--tail"),
        ("logs 4 --since yesterday", 2, "--since 'yesterday' is no time"),
        ("logs 4 --since 999999d", 2, "--since '999999d' is beyond the calendar"),
        ("logs 4 --since 9999-12-31T23:59:59-14:00", 2, "is beyond the calendar"),
        ("logs 4 --since ", 2, "--since '' is no time"),
        ("status ", 2, "'' is not an experiment ID"),
        ("status 1.train.99999999999999999999", 2, "is not an experiment ID"),
        ("logs 4 --tail ", 2, "'' is no whole number"),
        ("validate -f ", 2, "it is empty; give the path of a riseml.yml"),
        ("train -f ", 2, "it is empty"),
        ("init -f ", 2, "it is empty"),
        ("pool drain ", 2, "'' is no name of a host"),
        ("pool resume a/b", 2, "'a/b' is no name of a host"),
        ("pool trust ..", 2, "'..' is no name of a host"),
        ("monitor ../etc", 2, "is not an experiment ID"),
        ("kill 9", 3, "there is no experiment 9"),
        ("kill 4;rm", 2, "is not an experiment ID"),
        ("train -p lr", 2, "-p 'lr' is no pair"),
        ("train -p", 2, "`riseml train -h`"),
        ("monitor --gpu=3", 2, "`riseml monitor -h`"),
        ("server stop now", 2, "`riseml server stop -h`"),
        ("train --set =1", 2, "--set '=1' is no pair"),
        ("train -f gone.yml", 3, "there is no file gone.yml"),
        ("validate -f gone.yml", 3, "there is no file gone.yml"),
        ("system clean --foreign zz", 2, "--foreign 'zz' is no server"),
        ("validate -f /dev/null", 3, "/dev/null is no regular file"),
        ("validate -f /proc", 3, "there is no riseml.yml in /proc"),
        ("train extra", 2, "unexpected extra argument"),
        ("init", 4, "riseml.yml is already there"),
        ("server fly", 2, "no such command"),
    ],
)
def test_wrong_input_is_one_clear_message(riseml: Riseml, words: str, code: int, said: str) -> None:
    result = riseml(*words.split(" "))
    assert (result.code, result.out) == (code, "")
    assert result.err.startswith("error: ")
    assert said in result.err
    assert len(result.err.splitlines()) <= 2


@pytest.mark.parametrize(
    "url", ["toaster", "http://", "http://:80", "http://a b", "http://[::1", "http://host:99999", "ftp://host"]
)
def test_an_address_of_a_server_that_is_none(riseml: Riseml, url: str) -> None:
    result = riseml("status", environ={"RISEML_SERVER": url})
    assert (result.code, result.out) == (2, "")
    assert "RISEML_SERVER is " in result.err
    assert "https://riseml.example.org:8443" in result.err


@pytest.mark.parametrize("verb", ["validate", "train", "logs", "monitor", "kill"])
def test_outside_of_a_project_the_next_step_is_named(riseml: Riseml, tmp_path: Path, verb: str) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    result = riseml(verb, where=empty)
    assert (result.code, result.out) == (3, "")
    assert f"there is no riseml.yml in {empty}" in result.err
    assert "hint: " in result.err


# --- init, validate ---


def test_init_writes_a_file_that_is_valid(riseml: Riseml, tmp_path: Path) -> None:
    place = tmp_path / "My toaster!"
    place.mkdir()
    result = riseml("init", where=place)
    assert (result.code, result.err) == (0, "")
    assert result.out == "Wrote riseml.yml for project My-toaster. Edit it, then start with `riseml train`.\n"
    assert riseml("validate", where=place).code == 0


def test_validate_says_that_train_would_refuse_a_framework(riseml: Riseml, tmp_path: Path) -> None:
    (tmp_path / "riseml.yml").write_text("project: p\ntrain: {framework: pytorch, image: x, run: y}\n")
    result = riseml("validate", where=tmp_path)
    assert result.code == 0
    assert "cannot run the framework 'pytorch'" in result.err


def test_validate_says_what_it_found(riseml: Riseml) -> None:
    result = riseml("validate")
    assert result.code == 0
    assert result.out.startswith("riseml.yml is valid: project ai-toaster, 1 job (train)")
    assert json.loads(riseml("validate", "--json").out) == []


def test_validate_shows_every_problem_with_its_line(riseml: Riseml, folder: Path) -> None:
    (folder / "riseml.yml").write_text("project: a\ntrain:\n  image: x\n  rum: python x.py\n  concurrency: many\n")
    result = riseml("validate")
    assert (result.code, result.out) == (2, "")
    assert "    4 |   rum: python x.py\n      |   ^\n" in result.err
    assert "riseml.yml:5:" in result.err
    shapes = riseml("validate", "--json")
    assert shapes.code == 2
    assert {"file", "line", "column", "path", "problem", "hint", "severity"} == set(json.loads(shapes.out)[0])


def test_validate_needs_no_server(riseml: Riseml, door: Door) -> None:
    riseml("validate")
    assert door.asked == []


# --- train ---


def test_train_syncs_submits_and_follows(riseml: Riseml, door: Door) -> None:
    finish(door)
    result = riseml("train")
    assert result.code == 0
    assert result.out.splitlines() == [
        "Syncing project (122 B, 2 files)...done",
        "4             | [2026-08-31T07:23:46Z] --> RUNNING",
        "4.master      | [2026-08-31T07:23:46Z] hello",
        "4.worker.1    | [2026-08-31T07:23:46Z] from a worker",
        "Experiment 4 FINISHED",
        "Output: /output/paul/ai-toaster/4",
    ]
    (digest, content) = next(iter(door.snapshots.items()))
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        assert tar.getnames() == ["riseml.yml", "train.py"]
    submission = door.bodies[0]
    assert (submission["project"], submission["snapshot"], submission["file"]) == ("ai-toaster", digest, "riseml.yml")
    assert len(submission["key"]) == 32


def test_what_the_server_has_is_not_sent_again(riseml: Riseml, door: Door) -> None:
    finish(door)
    riseml("train")
    assert "...done (no changes)\n" in riseml("train").out
    assert sum(question.startswith("PUT") for question in door.asked) == 1


@pytest.mark.parametrize(("name", "code"), [("FINISHED", 0), ("FAILED", 1), ("KILLED", 130)])
def test_train_ends_as_the_experiment_does(riseml: Riseml, door: Door, name: str, code: int) -> None:
    finish(door, state_name=name, exit_code=7, message="exit code 7", cause="master")
    result = riseml("train")
    assert result.code == code
    assert f"Experiment 4 {name}" in result.out


def test_a_server_that_is_gone_for_a_moment_is_one_short_note(riseml: Riseml, door: Door) -> None:
    finish(door)
    door.cuts = [2]
    result = riseml("train")
    assert result.code == 0
    assert result.out.count("hello") == 1
    assert result.err == LOST


def test_train_detached_says_how_to_come_back(riseml: Riseml, door: Door) -> None:
    result = riseml("train", "-d")
    assert result.code == 0
    assert "`riseml logs 4`" in result.out
    assert not any("logs" in question for question in door.asked)


def test_train_json_is_one_document_a_line(riseml: Riseml, door: Door) -> None:
    finish(door)
    documents = [json.loads(one) for one in riseml("train", "--json").out.splitlines()]
    assert documents[0]["id"] == "4"
    assert [one["type"] for one in documents[1:]] == ["state", "line", "line", "end"]


def test_train_stops_at_problems_before_anything_is_sent(riseml: Riseml, door: Door, folder: Path) -> None:
    (folder / "riseml.yml").write_text("project: a\n")
    result = riseml("train")
    assert result.code == 2
    assert "Nothing was started." in result.err
    assert door.asked == []


def test_parameters_and_settings_go_along(riseml: Riseml, door: Door, folder: Path) -> None:
    config = (folder / "riseml.yml").read_text().replace("train.py", "train.py {{ lr }}")
    (folder / "riseml.yml").write_text(config)
    result = riseml("train", "-d", "-p", "lr=a=b", "--set", "train.resources.gpus=2")
    assert (result.code, result.err) == (0, "")
    assert door.bodies[0]["parameters"] == [["lr", "a=b"]]
    assert door.bodies[0]["settings"] == [["train.resources.gpus", "2"]]


def test_names_are_passed_through_from_the_caller(riseml: Riseml, door: Door, folder: Path) -> None:
    with (folder / "riseml.yml").open("a") as file:
        file.write("  env: [TOKEN]\n")
    missing = riseml("train", "-d")
    assert (missing.code, door.bodies) == (2, [])
    assert "TOKEN" in missing.err
    assert "export TOKEN=" in missing.err
    riseml("train", "-d", environ={"TOKEN": "secret", "OTHER": "x"})
    assert door.bodies[0]["environment"] == {"TOKEN": "secret"}


@pytest.mark.parametrize(("limit", "code"), [("1B", 2), ("100", 2), ("1KB", 0), ("0.5 MiB", 0), ("lots", 2), ("-1", 2)])
def test_the_limit_of_a_sync_can_be_set(riseml: Riseml, door: Door, limit: str, code: int) -> None:
    result = riseml("train", "-d", environ={"RISEML_SYNC_LIMIT": limit})
    assert result.code == code
    assert ("RISEML_SYNC_LIMIT" in result.err) == bool(code)
    assert bool(door.bodies) == (code == 0)


def test_ctrl_c_leaves_the_log_and_says_how_to_come_back(
    riseml: Riseml, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish(door)

    def interrupt(*_: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr("riseml.cli.lines.LogText.lines", interrupt)
    result = riseml("train")
    assert result.code == 130
    assert result.err.splitlines()[-1] == (
        "Experiment 4 will continue in background. Type `riseml logs 4` to connect to the log stream again."
    )


def test_ctrl_c_before_is_short(riseml: Riseml, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr("riseml.project.take_snapshot", interrupt)
    result = riseml("train")
    assert (result.code, result.err) == (130, "\nInterrupted.\n")


def test_an_executor_that_nobody_asked_for_is_one_note(riseml: Riseml, door: Door) -> None:
    door.server |= {"executor": "process", "note": "No Docker Engine answers here."}
    assert riseml("train", "-d").err == "note: No Docker Engine answers here.\n"
    assert "Executor: process\nNote: No Docker Engine answers here.\n" in riseml("server", "status").out


def test_the_server_s_refusal_is_shown(riseml: Riseml, door: Door) -> None:
    door.refuse("POST /experiments", "Refused", "this can never run: local has 2 cpus", exit_code=4, status=403)
    result = riseml("train")
    assert result.code == 4
    assert result.err == "error: this can never run: local has 2 cpus\nhint: do this\n"


PLAN: wire.Plan = {
    "project": "ai-toaster",
    "framework": "plain",
    "image": "riseml/environment:1",
    "base": "python:3.11",
    "install": ["pip install x"],
    "cached": False,
    "experiments": [
        {
            "id": "4",
            "output": "/output/4",
            "waits": None,
            "parameters": {"lr": "1"},
            "jobs": [
                {
                    "name": "train",
                    "part": "DECIDES",
                    "host": None,
                    "cpus": 1.0,
                    "mem_mib": 512,
                    "gpus": 0,
                    "limit_cpus": None,
                    "limit_mem_mib": 2048,
                    "shm_mib": 1024,
                    "environment": {"LR": "1"},
                    "passed_on": ["API_TOKEN"],
                    "run": ["python train.py"],
                    "command": ["sh", "-c", "python train.py"],
                }
            ],
        }
    ],
    "notes": [],
}


def test_what_is_refused_anyway_is_refused_before_a_file_is_read(
    riseml: Riseml, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("riseml.project.take_snapshot", None)
    door.refuse("POST /experiments/check", "Refused", "this can never run", exit_code=4, status=403)
    result = riseml("train")
    assert (result.code, result.out) == (4, "")
    assert result.err == "error: this can never run\nhint: do this\n"
    assert (door.snapshots, door.bodies) == ({}, [])


@pytest.mark.parametrize("train", ["framework: pytorch", "framework: tensorflow, tensorflow: {horovod: {workers: 2}}"])
def test_a_framework_that_cannot_run_is_refused_before_a_server_is_asked(
    riseml: Riseml, door: Door, folder: Path, train: str
) -> None:
    (folder / "riseml.yml").write_text(f"project: p\ntrain: {{{train}, image: x, run: y}}\n")
    for words in (["train"], ["train", "--dry-run"]):
        result = riseml(*words)
        assert (result.code, result.out) == (2, "")
        assert "cannot run the framework" in result.err
    assert door.asked == []


def test_a_dry_run_starts_nothing(riseml: Riseml, door: Door) -> None:
    door.answers["POST /plans"] = (200, PLAN)
    result = riseml("train", "--dry-run")
    assert result.code == 0
    assert "riseml/environment:1 (will be built)" in result.out
    assert "lr=1" in result.out
    assert "python train.py" in result.out
    assert (door.snapshots, door.bodies) == ({}, [])
    assert json.loads(riseml("train", "--dry-run", "--json").out) == PLAN


# --- server, system, trouble ---


def test_the_server_is_shown(riseml: Riseml) -> None:
    assert f"Server: riseml {__version__}, process 7" in riseml("server", "status").out
    assert json.loads(riseml("server", "status", "--json").out)["pid"] == 7


def test_no_server_is_told_and_none_is_started(riseml: Riseml, tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    result = riseml("server", "status", environ={"RISEML_HOME": home})
    assert result.code == 5
    assert "no riseml server runs" in result.err
    assert riseml("server", "stop", environ={"RISEML_HOME": home}).out == f"No riseml server runs for {home}.\n"
    assert not (tmp_path / "home").exists()


def test_the_system_is_shown(riseml: Riseml) -> None:
    short, long = riseml("system", "info").out, riseml("system", "info", "-l").out
    assert short.splitlines()[1].split() == ["local", "up", "0.5/2", "1.0/16.0", "GiB", "0/0"]
    assert "Docker 20.10.24" in long
    assert json.loads(riseml("system", "info", "--json").out)["hosts"][0]["name"] == "local"


def test_a_team_server_that_does_not_answer_is_named(riseml: Riseml) -> None:
    result = riseml("status", environ={"RISEML_SERVER": "http://127.0.0.1:1"})
    assert result.code == 5
    assert "http://127.0.0.1:1" in result.err
    assert "RISEML_SERVER" in result.err


def test_no_traceback_reaches_a_person(riseml: Riseml, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> object:
        raise ZeroDivisionError("oops\nmore")

    monkeypatch.setattr("riseml.project.find_project", fail)
    monkeypatch.setattr("riseml.cli.files.find_project", fail)
    result = riseml("validate")
    assert (result.code, result.err.splitlines()[0]) == (1, "error: riseml itself failed: ZeroDivisionError: oops")
    assert "--debug" in result.err
    with pytest.raises(ZeroDivisionError):
        riseml("validate", "--debug")


def test_a_silent_host_that_is_drained_is_called_both(riseml: Riseml, door: Door) -> None:
    silent = HOSTS[0] | {"state": "silent", "drained": True, "message": "no way there", "mem_mib": 0}
    door.answers["GET /system"] = (200, {"server": door.server, "hosts": [silent]})
    result = riseml("system", "info")
    assert "silent, drained" in result.out
    assert result.err == "warning: local: no way there\n"
