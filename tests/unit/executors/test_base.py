"""What every executor shares: the cancellation of a call that blocks."""

from __future__ import annotations

import pytest

from riseml.base.errors import EngineError
from riseml.executors.base import Cancellation


def test_a_cancellation_unblocks_what_was_attached_last() -> None:
    unblocked: list[str] = []
    cancellation = Cancellation()
    cancellation.attach(lambda: unblocked.append("the first stream"))
    cancellation.attach(lambda: unblocked.append("the second stream"))
    cancellation.check()
    cancellation.ask()
    assert unblocked == ["the second stream"]
    with pytest.raises(EngineError, match="cancelled") as raised:
        cancellation.check()
    assert raised.value.permanent


def test_what_is_attached_after_a_cancellation_is_unblocked_at_once() -> None:
    unblocked: list[str] = []
    cancellation = Cancellation()
    cancellation.ask()
    cancellation.attach(lambda: unblocked.append("a late stream"))
    assert unblocked == ["a late stream"]
