"""Texts as messages show them, and texts that no process takes."""

from __future__ import annotations

import pytest

from riseml.spec.scalars.texts import is_valid_text, make_valid, quote_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a b", '"a b"'),
        ('a"b\\', '"a\\"b\\\\"'),
        ("a\nb\x1b", '"a\\nb\\x1b"'),
        ("\u00e9", '"\u00e9"'),
        ("x" * 61, f'"{"x" * 60}..."'),
    ],
)
def test_a_message_shows_a_text_on_one_line_and_not_whole(text: str, shown: str) -> None:
    assert quote_text(text) == shown


@pytest.mark.parametrize(
    ("text", "escaped"), [("a\u00e9\n", None), ("caf\udce9.py", "caf\\udce9.py"), ("a\0b", "a\\x00b")]
)
def test_what_no_process_takes_is_escaped(text: str, escaped: str | None) -> None:
    assert is_valid_text(text) is (escaped is None)
    assert make_valid(text) == (text if escaped is None else escaped)
    assert is_valid_text(make_valid(text))
