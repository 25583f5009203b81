"""Sizes and paths as messages show them."""

from __future__ import annotations

import pytest

from riseml.files.project.messages import format_path, format_size, join_first


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 KB"), (5_700_000, "5.7 MB"), (999_960, "1.0 MB"), (3e12, "3.0 TB")],
)
def test_sizes_are_short(size: int, text: str) -> None:
    assert format_size(size) == text


@pytest.mark.parametrize(
    ("path", "text"),
    [("data/é.csv", "data/é.csv"), ("two\nlines", r"'two\nlines'"), ("a\udcff", r"a\xff"), ("\x1b[31m", r"'\x1b[31m'")],
)
def test_a_path_is_one_line_that_a_terminal_prints(path: str, text: str) -> None:
    assert format_path(path) == text


@pytest.mark.parametrize(
    ("names", "text"), [("", ""), ("a", "a"), ("abcde", "a, b, c, d, e"), ("abcdefghi", "a, b, c, d, e and 4 more")]
)
def test_a_message_names_five_paths(names: str, text: str) -> None:
    assert join_first(names) == text
