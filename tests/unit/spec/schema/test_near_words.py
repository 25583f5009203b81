"""Words that are like others."""

from __future__ import annotations

import pytest

from riseml.spec.schema.near_words import count_edits, find_near_word, squash, suggest_word


def test_a_value_is_suggested_where_it_is_like_another() -> None:
    assert suggest_word("helping", ["decides", "helps", "serves"]) == "helps"
    assert suggest_word("xyz", ["decides", "helps"]) is None
    assert find_near_word("helping", ["decides", "helps"]) is None


@pytest.mark.parametrize(
    ("word", "other", "edits"),
    [("run", "run", 0), ("rnu", "run", 1), ("rn", "run", 1), ("ran", "run", 1), ("a", "run", 2)],
)
def test_an_exchange_of_two_letters_is_one_mistake(word: str, other: str, edits: int) -> None:
    assert count_edits(word, other, 1) == edits


def test_spellings_of_one_word_are_the_same() -> None:
    assert {squash(word) for word in ("max_duration", "maxDuration", "max-duration", "MAX_DURATION")} == {"maxduration"}
