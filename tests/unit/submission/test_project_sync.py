"""`train` of many unread files, with the fake server: they go while they are read, when the server is here."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from riseml.base.errors import Unreachable
from riseml.cli.context import CommandContext
from riseml.cli.output.printer import Printer
from riseml.client.exchange import Address
from riseml.client.server_client import Client
from riseml.files.project import early_contents
from riseml.submission.project_sync import ProjectSync
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer, finish

NAMES = ("riseml.yml", "train.py")


def list_sent(fake_server: FakeServer) -> list[str]:
    """Return what was sent of the project's files, each question without the digest and the name of a pack."""
    sent = [question for question in fake_server.asked if re.search("/contents|/manifest|/packs", question)]
    return [re.sub(r"/snapshots/[0-9a-f]{64}|(?<=/packs)/[0-9a-f]{32}", "", question) for question in sent]


@pytest.fixture(autouse=True)
def _any_size_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_contents, "_LEAST", 1)


def test_unread_files_go_before_their_list(riseml: Riseml, fake_server: FakeServer, folder: Path) -> None:
    finish(fake_server)
    assert "Syncing project (122 B, 2 files)...done\n" in riseml("train").out
    assert list_sent(fake_server) == ["POST /packs", "PUT /manifest"]
    (files,) = fake_server.snapshots.values()
    assert files == {name: (folder / name).read_bytes() for name in NAMES}


def test_a_break_while_they_go_loses_nothing(
    riseml: Riseml, fake_server: FakeServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off(_: Client, name: str) -> None:
        assert (fake_server.incoming / name).exists()
        raise Unreachable("the connection broke")

    monkeypatch.setattr(Client, "hand_over_pack", break_off)
    finish(fake_server)
    assert riseml("train").code == 0
    assert list_sent(fake_server) == ["PUT /manifest", "POST /contents"]  # those of the list
    (files,) = fake_server.snapshots.values()
    assert files == {name: (folder / name).read_bytes() for name in NAMES}
    assert not list(fake_server.incoming.iterdir())


def test_a_folder_for_packs_that_is_missing_loses_nothing(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.incoming.rmdir()
    finish(fake_server)
    assert riseml("train").code == 0
    assert list_sent(fake_server) == ["PUT /manifest", "POST /contents"]


@pytest.mark.parametrize("status", [404, 413, 507])
def test_a_server_that_refuses_them_is_asked_what_it_lacks(
    riseml: Riseml, fake_server: FakeServer, status: int
) -> None:
    finish(fake_server)
    fake_server.answers["POST /packs"] = (status, {"detail": "no"})
    assert riseml("train").code == 0
    assert list_sent(fake_server) == ["POST /packs", "PUT /manifest", "POST /contents"]
    assert not list(fake_server.incoming.iterdir())


def test_a_server_on_another_machine_is_asked_first(fake_server: FakeServer, folder: Path) -> None:
    printer = Printer(io.StringIO(), io.StringIO())
    sync = ProjectSync(CommandContext(printer, {"RISEML_HOME": str(fake_server.home)}, folder), folder)
    listing = sync.list_files()
    with Client(Address(url="http://127.0.0.1:1")) as there, Client(Address(fake_server.home / "server.sock")) as here:
        assert sync._send_early(there, listing) is listing
        assert all(entry.content for entry in sync._send_early(here, listing).entries)


@pytest.mark.parametrize(("breaks", "code"), [(0, 0), (3, 0), (4, 5)])
def test_a_server_that_was_lost_gets_some_time_to_start_again(
    riseml: Riseml, fake_server: FakeServer, monkeypatch: pytest.MonkeyPatch, breaks: int, code: int
) -> None:
    usual, left = Client.has_snapshot, [None] * breaks

    def break_off(client: Client, digest: str) -> bool:
        if left:
            left.pop()
            raise Unreachable("the connection broke")
        return usual(client, digest)

    monkeypatch.setattr(Client, "has_snapshot", break_off)
    finish(fake_server)
    assert (riseml("train").code, left) == (code, [])
