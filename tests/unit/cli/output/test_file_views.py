"""Names of files in tables."""

from __future__ import annotations

import json

from riseml.job_programs.folder_paths import show_name
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer
from tests.unit.cli.listings import answer_listing, entry


def test_names_are_shown_escaped(riseml: Riseml, fake_server: FakeServer) -> None:
    answer_listing(fake_server, entry("a\nb\x1b[2J"), entry("%FF", "folder"), entry("\u202etxt"), entry(".hidden"))
    assert riseml("ls", "data://").out.splitlines() == ["a\\nb\\x1b[2J", "\\xff/", "\\u202etxt"]
    rows = [json.loads(line)["path"] for line in riseml("ls", "-a", "data://", "--json").out.splitlines()]
    assert rows == ["data://a\nb\x1b[2J", "data://\udcff", "data://\u202etxt", "data://.hidden"]
    assert show_name("a b%25") == "a b%"
