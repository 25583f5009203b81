"""Answers of a newer server: what only it knows ends no command."""

from __future__ import annotations

from typing import Any

from riseml.analysis.result_answers import make_columns
from riseml.base import errors
from riseml.cli.log_follower import get_exit_code
from riseml.cli.output.pool_change_views import list_keys, list_members
from riseml.cli.output.style import Style
from tests.unit.cli.fake_server import end


def test_texts_that_only_a_newer_server_knows_end_no_command() -> None:
    style = Style(colour=False)
    keys: Any = {"host": "a", "known_hosts": "", "keys": [{"kind": "X", "fingerprint": "f", "pinned": "later"}]}
    members: Any = [{"host": "a", "membership": "later"}]
    results: Any = {"objective": {"metric": "loss", "goal": "later"}, "parameters": [], "same": {}, "metrics": ["loss"]}
    assert "later" in "".join(list_keys(keys, style))
    assert "later" in "".join(list_members(members, style))
    assert get_exit_code(end("PAUSED")) == errors.ExperimentFailed.exit_code
    assert make_columns(results) is not None
