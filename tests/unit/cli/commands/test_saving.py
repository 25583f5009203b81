"""`save`: it waits for the copy, and ends with an error when something is missing."""

from __future__ import annotations

from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer
from tests.unit.cli.saved_outputs import SAVED


def test_save_ends_with_an_error_when_something_is_not_there(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["POST /experiments/4/save"] = (200, {**SAVED, "state": "saving"})
    fake_server.answers["GET /experiments/4/saved"] = (200, SAVED)
    assert riseml("save", "4").code == 0
    fake_server.answers["GET /experiments/4/saved"] = (200, {**SAVED, "state": "incomplete", "trouble": "no bucket"})
    result = riseml("save", "4")
    assert (result.code, "NOT complete" in result.out) == (5, True)
