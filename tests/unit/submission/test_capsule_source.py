"""The run that a user names to repeat: an experiment of the server, or a capsule in a folder."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from riseml.base.errors import NotFound
from riseml.cli.context import CommandContext
from riseml.cli.output.printer import Printer
from riseml.client.server_client import Client
from riseml.planning.capsule import write_capsule
from riseml.submission.capsule_source import CapsuleSource, find_capsule, open_archive, read_source
from tests.unit.cli.fake_server import FakeServer, make_experiment
from tests.unit.planning.test_capsule import capsule_of, make


@pytest.fixture
def command(fake_server: FakeServer, folder: Path) -> CommandContext:
    return CommandContext(Printer(io.StringIO(), io.StringIO()), {"RISEML_HOME": str(fake_server.home)}, folder)


def test_a_path_is_a_capsule_and_an_id_is_an_experiment(command: CommandContext, folder: Path) -> None:
    (folder / "capsule.json").write_text(write_capsule(capsule_of(make())))
    place = find_capsule(command, "./capsule.json")
    assert find_capsule(command, "4") is None
    source = read_source(command, "./capsule.json", place, None)
    assert (source.name, source.place, source.config) == ("./capsule.json", place, source.capsule["config"])
    assert ("seed", "42") in source.parameters


@pytest.mark.parametrize(("kind", "is_set"), [("experiment", False), ("set", True)])
def test_a_set_has_its_parameters_in_its_file(
    command: CommandContext, client: Client, fake_server: FakeServer, kind: str, *, is_set: bool
) -> None:
    fake_server.experiments["4"] = make_experiment(type=kind)
    answer = {"capsule": capsule_of(make()), "config": "project: x\n"}
    fake_server.answers["GET /experiments/4/capsule"] = (200, answer)
    source = read_source(command, "4", None, client)
    assert (source.name, source.config, source.is_set) == ("experiment 4", "project: x\n", is_set)
    assert bool(source.parameters) is not is_set


@pytest.mark.parametrize(("digest", "said"), [("", "has no project files"), ("ab" * 32, "not on this server")])
def test_files_that_nobody_has_are_an_error(command: CommandContext, client: Client, digest: str, said: str) -> None:
    capsule = capsule_of(make())
    capsule["code"]["digest"] = digest
    with pytest.raises(NotFound, match=said), open_archive(command, CapsuleSource("it", capsule, ""), client):
        pass


def test_files_of_the_server_are_there_until_the_command_ends(
    command: CommandContext, client: Client, fake_server: FakeServer
) -> None:
    capsule = capsule_of(make())
    digest = capsule["code"]["digest"]
    fake_server.snapshots[digest] = b""
    fake_server.answers[f"GET /snapshots/{digest}"] = (200, "the archive")
    with open_archive(command, CapsuleSource("it", capsule, ""), client) as archive:
        assert archive.read_bytes() == b"the archive"
    assert not archive.exists()
