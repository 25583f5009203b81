"""Names that a metric may have, and how a report writes them."""

from __future__ import annotations

import pytest

from riseml.base.metric_names import LONGEST, is_metric_name, read_quoted_name


@pytest.mark.parametrize("name", ["loss", "val loss", "точность", "a" * LONGEST, "steps", "='x'"])
def test_any_printable_text_is_a_name(name: str) -> None:
    assert is_metric_name(name)
    assert read_quoted_name(name.encode()) == name


@pytest.mark.parametrize("name", ["", "a" * (LONGEST + 1), "two\nlines", "tab\t", "\x1b[31m", "\u202e"])
def test_what_no_terminal_prints_is_no_name(name: str) -> None:
    assert not is_metric_name(name)
    assert read_quoted_name(name.encode()) is None


def test_the_step_stands_in_a_report_and_is_no_metric() -> None:
    assert not is_metric_name("step")
    assert read_quoted_name(b"step") == "step"


@pytest.mark.parametrize(
    ("quoted", "name"),
    [
        (rb"val\u0020loss", "val loss"),
        (rb"a\"b", 'a"b'),
        (rb"st\u0065p", None),
        (rb"two\nlines", None),
        (rb"\x", None),
        (b"\xff", None),
    ],
)
def test_names_are_read_as_json_reads_them(quoted: bytes, name: str | None) -> None:
    assert read_quoted_name(quoted) == name
