"""Errors of the YAML parser in words of their users; tests/unit/spec/broken.txt has more of them."""

from __future__ import annotations

import pytest

from riseml.spec.yaml.document import parse_document

TAB = "the line is indented with a tab; YAML allows only spaces; replace the tab with spaces"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "a:\n\tb: 1\n",
            f"f:2:1: {TAB}",
        ),
        ("a: 'b\n", "f:1:4: the quote opened here is never closed; add the closing quote"),
        ("a: [b\n", "f:1:4: the [ opened here is never closed; add the ], or put the text in quotes"),
        ("a: {b: c\n", "f:1:4: the { opened here is never closed; add the }, or put the text in quotes"),
        ("a: b: c\n", "f:1:5: the line has a second `: `; put the text after the first one in quotes"),
        ("a:b\nc: d\n", "f:1:3: a space is missing after the colon; write `key: value`"),
        ("a: @b\n", "f:1:4: a text that begins with @ needs quotes; put the whole text in quotes"),
        ("%YAML 9.9\n---\na: b\n", "f:1:1: this YAML version is not supported; remove the %YAML line"),
        ("a: \x07\n", 'f:1:4: a control character that YAML does not allow: "\\x07"; remove it'),
        ("a: b\n c: d\n", None),
    ],
)
def test_a_syntax_error_says_where_and_what_to_write(text: str, problem: str | None) -> None:
    told = [str(each) for each in parse_document(text, "f").problems]
    if problem is None:
        assert len(told) == 1 and "the indentation is wrong" in told[0]
    else:
        assert told == [problem]
