"""The removal of files in a storage of the server, after a yes."""

from __future__ import annotations

from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer
from tests.unit.cli.listings import answer_listing, entry


def test_rm_asks_and_needs_a_yes_elsewhere(riseml: Riseml, fake_server: FakeServer) -> None:
    answer_listing(fake_server, entry("x", size=3))
    fake_server.answers["POST /files/remove"] = (
        200,
        {"path": "x", "files": 1, "folders": 1, "size": 3, "done": True},
    )
    done = riseml("rm", "-r", "data://x")
    assert (done.code, "--yes removes without a question" in done.err) == (4, True)
    new = riseml("rm", "--dry-run", "-r", "data://x")
    assert new.err == "Would remove 1 file.\n"
    old = riseml("rm", "-nr", "data://x")
    assert old.out == new.out
    assert old.err == f"warning: -n for --dry-run ends with the next release; write --dry-run\n{new.err}"
    assert not any("remove" in one for one in fake_server.asked)
    done = riseml("rm", "-r", "data://x", "--yes")
    assert (done.code, done.err) == (0, "Removed 1 file.\n")
    assert any("remove" in one for one in fake_server.asked)
