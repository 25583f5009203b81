"""The words by which states are shown."""

from __future__ import annotations

import pytest

from riseml.base.state_words import name_state


@pytest.mark.parametrize(
    ("state", "reason", "word"),
    [
        ("FINISHED", "STOPPED_EARLY", "STOPPED_EARLY"),
        ("FINISHED", "COMPLETED", "FINISHED"),
        ("RUNNING", "STOPPED_EARLY", "RUNNING"),
    ],
)
def test_a_trial_that_was_stopped_did_not_finish_by_itself(state: str, reason: str, word: str) -> None:
    assert name_state(state, reason) == word
