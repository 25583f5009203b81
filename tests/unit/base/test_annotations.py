"""Names, tags and notes: what is allowed, and that no word looks like an ID."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.base.annotations import (
    LONGEST_NAME,
    LONGEST_NOTE,
    BadAnnotation,
    read_name,
    read_note,
    read_tag,
)
from riseml.base.errors import UsageError
from riseml.base.names import parse_id


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty"),
        ("4", "looks like the ID of an experiment"),
        ("18.2", "looks like the ID of an experiment"),
        ("4.worker.1", "looks like the ID of an experiment"),
        ("paul.4", "looks like the ID of an experiment"),
        ("1234567890", "looks like the ID of an experiment"),
        ("\uff14", "looks like the ID of an experiment"),
        ("-x", "begins with '-'"),
        ("a/b", "has the character '/'"),
        ("a\x1b[2J", "has the character '\\x1b'"),
        ("a\u202eb", "has the character '\\u202e'"),
        ("x" * (LONGEST_NAME + 1), "has 65 characters"),
    ],
)
def test_a_word_that_is_no_name_is_no_tag_either(text: str, problem: str) -> None:
    for read in read_name, read_tag:
        with pytest.raises(BadAnnotation) as raised:
            read(text)
        assert raised.value.problem == problem
        assert raised.value.hint


def test_words_are_normalised() -> None:
    composed, combined = "gr\u00f6\u00dfe", "gro\u0308\u00dfe"
    assert read_tag(combined) == read_tag(composed) == composed
    assert read_name("  lr  warmup ") == "lr  warmup"
    assert read_name("baseline lr=0.01") == "baseline lr=0.01"
    with pytest.raises(BadAnnotation, match="has the character ' '"):
        read_tag("two words")


@given(st.text(max_size=80))
def test_a_word_that_is_allowed_is_never_an_id_and_reads_as_itself(text: str) -> None:
    try:
        name = read_name(text)
    except BadAnnotation:
        return
    assert read_name(name) == name == unicodedata.normalize("NFC", name)
    assert name.isprintable()
    with pytest.raises(UsageError):
        parse_id(name)


@pytest.mark.parametrize("text", ["a\0b", "\udcff", "x" * (LONGEST_NOTE + 1)])
def test_a_note_that_cannot_be_stored_is_refused(text: str) -> None:
    with pytest.raises(BadAnnotation):
        read_note(text)
    note = "**lr** warmup\r\n\tand \x1b[2J"
    assert read_note(note) == note
