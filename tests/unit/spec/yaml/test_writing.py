"""Nodes are written as YAML text of the same values."""

from __future__ import annotations

import pytest

from riseml.spec.yaml.document import parse_document
from riseml.spec.yaml.writing import write_document


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a: [1, 1.10]", "a: [1, 1.10]\n"),
        ("a: '012'\nb: \"x y\"\n", "a: '012'\nb: \"x y\"\n"),
        ("a: |\n  x\n  y\n", "a: |\n  x\n  y\n"),
        ("a: {b: c}  # why\n", "a:\n  b: c\n"),
        ("a: &x [1]\nb: *x\n", "a: [1]\nb: [1]\n"),
        ("a: yes\nb: ~\nc: \u00e9\n", "a: yes\nb: ~\nc: \u00e9\n"),
    ],
)
def test_scalars_keep_their_texts_and_quotes(text: str, written: str) -> None:
    root = parse_document(text, "f").root
    assert root is not None
    assert write_document(root) == written


def test_a_long_text_stays_on_its_line() -> None:
    line = f"a: {'x ' * 5000}y\n"
    root = parse_document(line, "f").root
    assert root is not None
    assert write_document(root) == line
