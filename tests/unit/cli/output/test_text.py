"""Foreign text without what rewrites a terminal; times, ages and amounts as people read them."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.cli.output.text import (
    clean_lines,
    clean_text,
    escape_json,
    format_age,
    format_bytes,
    format_cores,
    format_duration,
    format_of,
    format_seconds,
)

NOW = datetime(2026, 8, 31, 7, 24, 46, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 日本 🙂\t.", "plain é 日本 🙂\t."),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[Hgone", "gone"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;ZXZpbA==", ""),
        ("\x9b31mred", "red"),
        ("\x1bPq...\x1b\\a\x1bc\x1b(Bb", "ab"),
        ("10%\r50%\r100%", "100%"),
        ("done\r", "done"),
        ("50%\r\x1b[K", "50%"),
        ("\r\r", ""),
        ("a\x07b\x00c\x7f", "a\\x07b\\x00c\\x7f"),
        ("a\nb", "a\\x0ab"),
        ("user\u202etxt.exe", "user\\u202etxt.exe"),
        ("a\u2028b", "a\\u2028b"),
        ("\ud800", "\\ud800"),
        ("[bold]no markup[/bold]", "[bold]no markup[/bold]"),
    ],
)
def test_foreign_text_cannot_rewrite_the_terminal(text: str, shown: str) -> None:
    assert clean_text(text) == shown


def test_colours_are_kept_where_they_are_wanted_and_end_with_the_line() -> None:
    assert clean_text("\x1b[1;31mred\x1b[5A", colours=True) == "\x1b[1;31mred\x1b[0m"
    assert clean_text("plain\x07", colours=True) == "plain\\x07"


@given(st.text(alphabet=st.characters() | st.sampled_from("\x1b[]mHJ;0\r\n\x07\x9b\\P")))
def test_nothing_but_colours_comes_through(text: str) -> None:
    assert clean_text(text).replace("\t", "").isprintable() or not re.search(
        r"[\x00-\x08\x0a-\x1f\x7f-\x9f]", clean_text(text)
    )
    left = re.sub(r"\x1b\[[0-9;:]*m", "", clean_text(text, colours=True))
    assert not re.search(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e]", left)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0 seconds"),
        (1.9, "1 second"),
        (119, "119 seconds"),
        (120, "2 minutes"),
        (7200, "2 hours"),
        (2e5, "2 days"),
    ],
)
def test_lengths_of_time(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("moment", "age"),
    [
        (None, "-"),
        ("2026-08-31T07:23:46Z", "1 m"),
        ("2026-08-31T07:23:46.123456Z", "59 s"),
        ("2026-08-31T07:30:00Z", "0 s"),
        ("2026-08-31T05:24:47Z", "1 h"),
        ("2026-08-28T07:24:46Z", "3 d"),
    ],
)
def test_ages_have_one_form(moment: str | None, age: str) -> None:
    assert format_age(moment, NOW) == age


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((None, "-"), (-3, "0s"), (0.4, "0s"), (59.9, "59s"), (200, "3m20s"), (7500, "2h05m")),
        *((86_400, "1d00h"), (864_000, "10d00h")),
    ],
)
def test_durations_are_short(seconds: float | None, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("cores", "text"),
    [
        (0, "0"),
        (0.0004, "<0.001"),
        (0.0042, "0.0042"),
        (0.01234, "0.012"),
        (0.37, "0.37"),
        (1.005, "1"),
        (12.3, "12.3"),
    ],
)
def test_small_loads_have_two_digits(cores: float, text: str) -> None:
    assert format_cores(cores) == f"{text} cores"
    assert format_of(format_cores(cores), format_cores(0.1)) == f"{text}/0.1 cores"


def test_printable_characters_need_no_cleaning() -> None:
    assert all(clean_text(chr(code)) == chr(code) for code in range(0x110000) if chr(code).isprintable())


@pytest.mark.parametrize("odd", ["\x1b[2J", "\x9b2J", "\x9d0;title\x9c", "\u202e", "\x07", "\n", "\ud800"])
def test_the_printer_cleans_what_a_view_has_missed(odd: str) -> None:
    fine = ["plain \t日本", "\x1b[1;31mred\x1b[0m"]
    assert clean_lines(fine, colours=True) is fine
    for colours in (False, True):
        (_, cleaned) = clean_lines(["plain", f"a{odd}b"], colours=colours)
        assert cleaned.isprintable()
    assert clean_lines(fine, colours=False) == ["plain \t日本", "red"]
    assert clean_lines([f"\x1b[1mbold\x1b[0m{odd}"], colours=True)[0].startswith("\x1b[1mbold\x1b[0m")


def test_json_is_the_same_without_characters_that_rewrite_a_terminal() -> None:
    value = {"\x9b2J": ["\x1b]0;t\x07", "\x7f\u202e\u2028 é 日本\n", "\ud800"]}
    text = escape_json(json.dumps(value, ensure_ascii=False))
    assert text.isprintable()
    assert "é 日本" in text
    assert json.loads(text) == value


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1023, "1 KiB"),
        (16 * 2**20, "16 MiB"),
        (1.02 * 2**30, "1.02 GiB"),
        (2**44, "16 TiB"),
    ],
)
def test_bytes_have_three_digits(size: float, shown: str) -> None:
    assert format_bytes(size) == shown


def test_a_unit_that_two_amounts_share_is_said_once() -> None:
    assert format_of(format_cores(0.37), format_cores(2)) == "0.37/2 cores"
    assert format_of("16 MiB", "2 GiB") == "16 MiB/2 GiB"
    assert format_of("-", "2 GiB") == "-/2 GiB"
