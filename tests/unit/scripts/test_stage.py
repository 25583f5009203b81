"""Commands of a demo: shown as typed, with their answers, and checked."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from scripts.stage import NotAsSaidError, Person, Stage


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person("paul", tmp_path, {"PATH": os.defpath})


def test_a_command_is_shown_with_its_answer(person: Person) -> None:
    output = io.StringIO()
    stage = Stage(output, 60)
    assert stage.type_line(person, "echo one; echo two >&2; exit 3", "^two$", code=3) == "one\ntwo\n"
    assert stage.await_line(person, "echo >> tries; grep -c '^$' tries", "^3$") == "3\n"
    assert output.getvalue() == (
        "paul$ echo one; echo two >&2; exit 3\none\ntwo\npaul$ echo >> tries; grep -c '^$' tries\n3\n"
    )


@pytest.mark.parametrize(
    ("line", "expected", "absent", "words"),
    [
        ("echo one; exit 3", "one", (), "`echo one; exit 3` of paul ended with 3, not with 0"),
        ("echo one", "two", (), "the answer to `echo one` of paul has no 'two'"),
        ("echo one", "one", ("on",), "the answer to `echo one` of paul has what nobody may see"),
        ("sleep 60", "", (), "`sleep 60` of paul ended with 124, not with 0"),
    ],
)
def test_an_answer_that_is_not_as_said_ends_the_demo(
    line: str, expected: str, absent: tuple[str, ...], words: str, person: Person
) -> None:
    with pytest.raises(NotAsSaidError) as raised:
        Stage(io.StringIO(), 1).type_line(person, line, expected, absent=absent)
    assert str(raised.value) == words
    with pytest.raises(NotAsSaidError, match="gets no 'never'"):
        Stage(io.StringIO(), 0.2).await_line(person, line, "never")
