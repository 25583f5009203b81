"""`export` of a capsule in a folder, which any person may have written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from riseml import wire
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer, make_experiment
from tests.unit.planning.test_capsule import capsule_of, make


def put(folder: Path, capsule: wire.Capsule) -> None:
    (folder / "capsule.json").write_text(json.dumps(capsule))


@pytest.fixture
def capsule() -> wire.Capsule:
    """A capsule without code, so that the command needs no server."""
    made = capsule_of(make())
    made["code"]["digest"] = ""
    return made


def test_a_text_that_cannot_be_written_leaves_nothing(riseml: Riseml, folder: Path, capsule: wire.Capsule) -> None:
    capsule["jobs"][0]["launch"]["command"] = ["echo \ud800"]
    put(folder, capsule)
    refused = riseml("export", "./capsule.json", "there", "--sh")
    assert (refused.code, (folder / "there").exists()) == (2, False)
    assert "the capsule has '\\ud800', which is not a UTF-8 character" in refused.err


def test_a_number_that_is_none_leaves_nothing(riseml: Riseml, folder: Path, capsule: wire.Capsule) -> None:
    capsule["jobs"][0]["cpus"] = float("inf")
    put(folder, capsule)
    refused = riseml("export", "./capsule.json", "there", "--slurm")
    assert (refused.code, (folder / "there").exists()) == (2, False), refused.err
    assert "inf" in refused.err


def test_what_compose_takes_from_the_user_is_said(riseml: Riseml, folder: Path, capsule: wire.Capsule) -> None:
    capsule["data"]["folder"] = "/home/ann/.ssh"
    capsule["jobs"][0]["hidden"] = ["AWS_SECRET_ACCESS_KEY"]
    put(folder, capsule)
    done = riseml("export", "./capsule.json", "there", "--compose")
    assert done.code == 0, done.err
    assert "/home/ann/.ssh" not in (folder / "there" / "compose.yaml").read_text()
    assert "the data was in /home/ann/.ssh, and compose.yaml mounts ./data" in done.err
    assert "AWS_SECRET_ACCESS_KEY has no value in these files" in done.err
    assert "compose gives the containers the value of your shell" in done.err


def test_jobs_whose_environment_scripts_do_not_make_are_named(
    riseml: Riseml, folder: Path, capsule: wire.Capsule
) -> None:
    capsule["environments"].append({**capsule["environments"][0], "image": "other"})
    capsule["jobs"][2]["environment"] = 1
    put(folder, capsule)
    for kind, said in (("--sh", True), ("--slurm", True), ("--compose", False)):
        done = riseml("export", "./capsule.json", f"there{kind}", kind)
        assert (done.code, "ps.1: image or install steps differ" in done.err) == (0, said), done.err


def test_a_set_has_no_files_and_no_capsule_of_its_own(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.experiments["11"] = make_experiment("11", type="set")
    capsule = {"capsule": capsule_of(make()), "config": ""}
    fake_server.answers["GET /experiments/11/capsule"] = (200, capsule)
    for words in (("export", "11", "--sh"), ("status", "11", "--capsule")):
        refused = riseml(*words)
        assert refused.code == 2, refused.err
        assert "11 is a set" in refused.err
        assert "`11.1`" in refused.err


def test_outputs_of_the_working_folder_are_said_to_stay_there(
    riseml: Riseml, folder: Path, capsule: wire.Capsule
) -> None:
    roles = "{a: {run: x, outputs: [logs, runs]}, b: {run: x}}"
    capsule["config"] = f"project: x\ntrain:\n  image: i\n  outputs: [runs]\n  roles: {roles}\n"
    put(folder, capsule)
    done = riseml("export", "./capsule.json", "there", "--sh")
    assert "`outputs` has no effect in these files: runs, logs stay where the jobs write them" in done.err
