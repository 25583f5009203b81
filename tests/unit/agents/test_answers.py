"""Answers are short, and say what they leave out."""

from __future__ import annotations

import json

from riseml.agents.answers import MOST_BYTES, shorten_answer


def test_a_short_answer_stays_as_it_is() -> None:
    answer = {"summary": "fine", "cut": [], "rows": [1, 2.5, None, True], "by": {"a": "b"}}
    assert shorten_answer(answer) == answer


def test_a_long_answer_is_cut_and_says_where() -> None:
    answer = {"summary": "s", "cut": [], "token": "t" * 5000, "rows": list(range(300)), "text": "x" * 9000}
    short = shorten_answer(answer)
    assert (short["token"], len(short["rows"]), len(short["text"])) == (answer["token"], 50, 2003)
    assert short["cut"] == ["rows: 50 of 300", "text: 2,000 of 9,000 characters"]


def test_the_longest_answer_is_within_the_limit() -> None:
    row = {"name": "\u00e4" * 4000, "values": {f"p{at}": "v" * 3000 for at in range(500)}}
    short = shorten_answer({"summary": "s", "cut": [], "rows": [row] * 500})
    assert len(json.dumps(short, ensure_ascii=False).encode()) <= MOST_BYTES
    assert any(note.startswith("rows: ") for note in short["cut"])  # type: ignore[attr-defined]  # a list here
