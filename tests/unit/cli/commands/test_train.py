"""`train`, in process, with the fake server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from riseml.cli.context import CommandContext
from riseml.cli.main import execute
from riseml.cli.output.printer import Printer
from riseml.files.project.archive import Snapshot, take_snapshot
from riseml.files.project.file_index import FileIndex
from riseml.files.project.listing import Listing
from riseml.frameworks import registry
from riseml.frameworks.plain import Plain
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import LOST, FakeServer, finish, make_experiment
from tests.unit.cli.plans import PLAN


def test_train_syncs_submits_and_follows(riseml: Riseml, fake_server: FakeServer, folder: Path) -> None:
    finish(fake_server)
    result = riseml("train")
    assert result.code == 0
    assert result.out.splitlines() == [
        "Syncing project (122 B, 2 files)...done",
        "4           RUNNING",
        "master   | hello",
        "worker.1 | from a worker",
        "",
        "Experiment 4 FINISHED",
        "  Output  /output/paul/ai-toaster/4",
        "  Next    riseml ls output://4",
        "          riseml show 4",
    ]
    (digest, files) = next(iter(fake_server.snapshots.items()))
    assert files == {name: (folder / name).read_bytes() for name in ("riseml.yml", "train.py")}
    submission = fake_server.bodies[0]
    assert (submission["project"], submission["snapshot"], submission["file"]) == ("ai-toaster", digest, "riseml.yml")
    assert len(submission["key"]) == 32


def test_files_that_the_server_has_are_not_sent_again(riseml: Riseml, fake_server: FakeServer) -> None:
    finish(fake_server)
    riseml("train")
    assert "...done (no changes)\n" in riseml("train").out
    assert sum(question.startswith("PUT") for question in fake_server.asked) == 1


def test_the_file_that_the_command_prints_to_is_not_sent(riseml: Riseml, fake_server: FakeServer, folder: Path) -> None:
    finish(fake_server)
    riseml("train")
    (digest,) = fake_server.snapshots
    with (folder / "train.log").open("w") as log:
        printer = Printer(log, log)
        context = CommandContext(printer, {"RISEML_HOME": str(fake_server.home)}, folder, wait=lambda _: None)
        assert execute(["train"], context) == 0
    shown = (folder / "train.log").read_text()
    assert "note: train.log is this command's own output, and is not sent\n" in shown
    assert "done (no changes)" in shown
    assert [*fake_server.snapshots] == [digest]


def test_a_project_that_changes_while_it_is_read_is_sent_again_as_it_is_then(
    riseml: Riseml, fake_server: FakeServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish(fake_server)

    def change_after(listing: Listing, index: FileIndex) -> Snapshot:
        snapshot = take_snapshot(listing, index)
        if changes:
            (folder / "train.py").write_text(changes.pop())
        return snapshot

    changes = ["print('third')", "print('second')"]
    monkeypatch.setattr("riseml.files.project.archive.take_snapshot", change_after)
    result = riseml("train")
    assert result.code == 0
    assert result.err.count("note: train.py changed while the project was being synced: it is sent again") == 2
    (files,) = fake_server.snapshots.values()
    assert files["train.py"] == b"print('third')"


@pytest.mark.parametrize(("name", "code"), [("FINISHED", 0), ("FAILED", 1), ("KILLED", 130)])
def test_the_exit_code_says_how_the_experiment_ended(
    riseml: Riseml, fake_server: FakeServer, name: str, code: int
) -> None:
    finish(fake_server, state_name=name, exit_code=7, message="exit code 7", cause="master")
    result = riseml("train")
    assert result.code == code
    assert f"Experiment 4 {name}" in result.out


def test_a_lost_server_is_one_message(riseml: Riseml, fake_server: FakeServer) -> None:
    finish(fake_server)
    fake_server.cuts = [2]
    result = riseml("train")
    assert result.code == 0
    assert result.out.count("hello") == 1
    assert result.err == LOST


def test_train_detached_names_the_command_for_its_log(riseml: Riseml, fake_server: FakeServer) -> None:
    result = riseml("train", "-d")
    assert result.code == 0
    assert "`riseml logs 4`" in result.out
    assert not any("logs" in question for question in fake_server.asked)


def test_train_detached_says_of_a_set_how_many_experiments_it_has(riseml: Riseml, fake_server: FakeServer) -> None:
    members = [make_experiment(f"4.{number}") for number in range(1, 9)]
    fake_server.experiments["4"] = make_experiment(type="set", experiments=members)
    out = riseml("train", "-d").out
    assert "Set 4 of 8 experiments runs in the background. Type `riseml logs 4` for its log.\n" in out


def test_train_json_is_one_document_a_line(riseml: Riseml, fake_server: FakeServer) -> None:
    finish(fake_server)
    documents = [json.loads(one) for one in riseml("train", "--json").out.splitlines()]
    assert documents[0]["id"] == "4"
    assert [one["type"] for one in documents[1:]] == ["state", "line", "line", "end"]


def test_train_stops_at_problems_before_anything_is_sent(riseml: Riseml, fake_server: FakeServer, folder: Path) -> None:
    (folder / "riseml.yml").write_text("project: a\n")
    result = riseml("train")
    assert result.code == 2
    assert "Nothing was started." in result.err
    assert fake_server.asked == []


def test_parameters_and_settings_are_submitted(riseml: Riseml, fake_server: FakeServer, folder: Path) -> None:
    config = (folder / "riseml.yml").read_text().replace("train.py", "train.py {{ lr }}")
    (folder / "riseml.yml").write_text(config)
    result = riseml("train", "-d", "-p", "lr=a=b", "--set", "train.resources.gpus=2")
    assert (result.code, result.err) == (0, "")
    assert fake_server.bodies[0]["parameters"] == [["lr", "a=b"]]
    assert fake_server.bodies[0]["settings"] == [["train.resources.gpus", "2"]]


def test_text_that_is_not_utf8_is_named(riseml: Riseml, fake_server: FakeServer, folder: Path) -> None:
    (folder / "gr\udcfc.yml").write_text((folder / "riseml.yml").read_text())
    refused = riseml("train", "-d", "-f", "gr\udcfc.yml")
    assert (refused.code, "gr\\xfc.yml is not UTF-8 text" in refused.err) == (2, True), refused.err
    (folder / "riseml.yml").write_text((folder / "riseml.yml").read_text() + "  env: [TOKEN]\n")
    refused = riseml("train", "-d", "--allow-env", "TOKEN", environ={"TOKEN": "gr\udcfc"})
    assert (refused.code, "the variable TOKEN is not UTF-8 text" in refused.err) == (2, True), refused.err
    assert "xfc" not in refused.err
    assert fake_server.bodies == []


@pytest.mark.parametrize(("limit", "code"), [("1B", 2), ("100", 2), ("1KB", 0), ("0.5 MiB", 0), ("lots", 2), ("-1", 2)])
def test_the_limit_of_a_sync_can_be_set(riseml: Riseml, fake_server: FakeServer, limit: str, code: int) -> None:
    result = riseml("train", "-d", environ={"RISEML_SYNC_LIMIT": limit})
    assert result.code == code
    assert ("RISEML_SYNC_LIMIT" in result.err) == bool(code)
    assert bool(fake_server.bodies) == (code == 0)


def test_ctrl_c_leaves_the_log_and_names_the_command_to_return(
    riseml: Riseml, fake_server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish(fake_server)

    def interrupt(*_: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr("riseml.cli.output.brief_log.BriefFormatter.format_entry", interrupt)
    result = riseml("train")
    assert result.code == 130
    assert result.err.splitlines()[-1] == (
        "Experiment 4 will continue in background. Type `riseml logs 4` to connect to the log stream again."
    )


def test_ctrl_c_before_the_submission_is_one_line(riseml: Riseml, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr("riseml.files.project.archive.take_snapshot", interrupt)
    result = riseml("train")
    assert (result.code, result.err) == (130, "\nInterrupted.\n")


def test_an_executor_that_the_server_chose_is_one_note(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.server |= {"executor": "process", "note": "No Docker Engine answers here."}
    assert riseml("train", "-d", "--executor", "process").err == "note: No Docker Engine answers here.\n"
    assert "Executor: process\nNote: No Docker Engine answers here.\n" in riseml("server", "status").out


def test_the_server_s_refusal_is_shown(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.refuse("POST /experiments", "Refused", "this can never run: local has 2 cpus", exit_code=4, status=403)
    result = riseml("train")
    assert result.code == 4
    assert result.err == "error: this can never run: local has 2 cpus\nhint: do this\n"


def test_a_refused_submission_reads_no_file(
    riseml: Riseml, fake_server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("riseml.files.project.archive.take_snapshot", None)
    fake_server.refuse("POST /experiments/check", "Refused", "this can never run", exit_code=4, status=403)
    result = riseml("train")
    assert (result.code, result.out) == (4, "")
    assert result.err == "error: this can never run\nhint: do this\n"
    assert (fake_server.snapshots, fake_server.bodies) == ({}, [])


def test_a_framework_that_cannot_run_is_refused_before_a_server_is_asked(
    riseml: Riseml, fake_server: FakeServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "FRAMEWORKS", (Plain(),))
    train = "framework: tensorflow, tensorflow: {horovod: {workers: 2}}"
    (folder / "riseml.yml").write_text(f"project: p\ntrain: {{{train}, image: x, run: y}}\n")
    for words in (["train"], ["train", "--dry-run"]):
        result = riseml(*words)
        assert (result.code, result.out) == (2, "")
        assert "cannot run the framework" in result.err
    assert fake_server.asked == []


def test_a_dry_run_starts_nothing(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["POST /plans"] = (200, PLAN)
    result = riseml("train", "--dry-run")
    assert result.code == 0
    assert "riseml/environment:1 (will be built)" in result.out
    assert "lr=1" in result.out
    assert "2 a100, 40960 MiB" in result.out
    assert "python train.py" in result.out
    assert (fake_server.snapshots, fake_server.bodies) == ({}, [])
    assert json.loads(riseml("train", "--dry-run", "--json").out) == PLAN


def test_the_help_of_train_says_its_exit_codes(riseml: Riseml, capsys: pytest.CaptureFixture[str]) -> None:
    """`test_the_exit_code_says_how_the_experiment_ended` proves them."""
    riseml("train", "-h")
    shown = " ".join(capsys.readouterr().out.split())
    assert "The exit code is 0 when it finished, 1 when it failed, 130 when it was killed." in shown
