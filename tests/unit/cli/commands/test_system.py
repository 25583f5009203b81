"""`system`: the hosts are shown; `system clean` shows what is left over, removes it, and says what stays."""

from __future__ import annotations

import json

from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer


def test_the_system_is_shown(riseml: Riseml) -> None:
    short, long = riseml("system", "info").out, riseml("system", "info", "-l").out
    assert short.splitlines()[5].split()[:6] == ["local", "up", "0.5/2", "1.0/16.0", "GiB", "0/0"]
    assert "Docker 20.10.24" in long
    assert json.loads(riseml("system", "info", "--json").out)["hosts"][0]["name"] == "local"


LEFT = {
    "kind": "network",
    "name": "riseml-12345678-9",
    "host": "local",
    "server": "12345678" * 4,
    "size": None,
    "made_at": None,
    "why": "its experiment has ended, or was never stored",
    "removed": False,
    "problem": None,
}
FILES = LEFT | {"kind": "snapshot", "name": "snapshots/abc", "host": None, "size": 2_500_000, "why": "unused"}
DISK = {
    "places": ["local", "riseml's home"],
    "percent": 88,
    "clean_above": 85,
    "removed": 3,
    "removed_at": "2026-11-27T12:00:00Z",
    "stuck": True,
}


def test_the_command_shows_and_removes_nothing(riseml: Riseml, fake_server: FakeServer) -> None:
    answer = {"leftovers": [LEFT, FILES], "others": {"f" * 32: 3}, "silent": ["two"], "disks": [DISK]}
    fake_server.answers["GET /leftovers"] = (200, answer)
    result = riseml("system", "clean")
    assert result.code == 0
    assert result.out == (
        "KIND      NAME               HOST        SIZE  WHY\n"
        "network   riseml-12345678-9  local          -  its experiment has ended, or was never stored\n"
        "snapshot  snapshots/abc      (server)  2.5 MB  unused\n"
    )
    assert "2 things, 2.5 MB. Nothing was removed: add --yes to remove it.\n" in result.err
    assert "Server ffffffff has 3 things on these hosts." in result.err
    assert "host two does not answer" in result.err
    assert (
        "The disk of local and riseml's home is 88 % full: above 85 %, and nothing is left on it that no experiment"
        " needs; the server has removed 3 unused things by itself, the last at 2026-11-27T12:00:00Z.\n"
    ) in result.err
    assert json.loads(riseml("system", "clean", "--json").out) == answer
    assert fake_server.asked[-1] == "GET /leftovers?caches=false&days=30&foreign="


def test_the_command_removes(riseml: Riseml, fake_server: FakeServer) -> None:
    stuck = LEFT | {"problem": "it is in use"}
    answer = {"leftovers": [FILES | {"removed": True}, stuck], "others": {}, "silent": [], "disks": []}
    fake_server.answers["POST /leftovers/remove"] = (200, answer)
    result = riseml("system", "clean", "--yes", "--images", "--days", "7", "--foreign", "ffffffff")
    assert fake_server.asked[-1] == "POST /leftovers/remove?caches=true&days=7&foreign=ffffffff"
    assert result.code == 5
    assert "Removed 1 thing, 2.5 MB.\n" in result.err
    assert "1 thing could not be removed: riseml-12345678-9: it is in use" in result.err


def test_nothing_is_left_over(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["GET /leftovers"] = (200, {"leftovers": [], "others": {}, "silent": [], "disks": []})
    result = riseml("system", "clean")
    assert (result.code, result.out, result.err) == (0, "", "Nothing is left over.\n")
