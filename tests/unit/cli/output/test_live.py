"""A view that is drawn again in its own place: no flicker, nothing twice, whatever the size of the terminal is."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest

from riseml.cli.output.live import LiveScreen
from tests.support.screen import Screen, read_screen

Resize = Callable[[int, int], None]


@pytest.fixture
def resize(monkeypatch: pytest.MonkeyPatch) -> Resize:
    """Return a function that gives the terminal a size."""

    def give(columns: int, rows: int) -> None:
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("LINES", str(rows))

    give(80, 24)
    return give


def test_a_view_that_a_signal_ends_or_stops_leaves_the_cursor(resize: Resize) -> None:
    terminal = io.StringIO()
    screen = LiveScreen(terminal, colour=False)
    screen.draw(["turn 1"])
    assert "\x1b[?25l" not in terminal.getvalue(), "SIGTERM or Ctrl-Z may come now"
    screen.close()


def test_a_frame_is_one_write_between_the_marks_of_a_synchronized_update(resize: Resize) -> None:
    writes: list[str] = []

    class Terminal(io.StringIO):
        def write(self, text: str) -> int:
            writes.append(text)
            return super().write(text)

    terminal = Terminal()
    screen = LiveScreen(terminal, colour=True)
    for turn in range(3):
        screen.draw([f"turn {turn}", "\x1b[1;31mFAILED\x1b[0m"])
    screen.close()
    assert len(writes) == 4
    assert all(text.startswith("\x1b[?2026h") and text.endswith("\x1b[?2026l") for text in writes)
    assert "\x1b[1;31mFAILED" in writes[0]
    shown = Screen(80, 24)
    shown.feed(terminal.getvalue().replace("\n", "\r\n"))
    assert (shown.lines(), shown.cursor_shown) == (["turn 2", "FAILED"], True)


def test_a_frame_that_shrinks_or_grows_leaves_nothing_behind(resize: Resize) -> None:
    terminal = io.StringIO()
    screen = LiveScreen(terminal, colour=False)
    for lines in (["a" * 80, "b"], ["c"], ["d", "e", "f"]):
        screen.draw(lines)
    screen.close()
    assert read_screen(terminal.getvalue(), 80, 24) == ["d", "e", "f"]
    assert "\x1b[1;" not in terminal.getvalue()


def test_a_new_size_clears_the_screen_and_draws_again(resize: Resize) -> None:
    terminal = io.StringIO()
    screen = LiveScreen(terminal, colour=False)
    screen.draw(["x" * 80, "y"])
    resize(40, 24)
    before = len(terminal.getvalue())
    screen.draw(["narrow"])
    screen.close()
    assert read_screen(terminal.getvalue()[before:].partition("\x1b[2J")[2], 40, 24) == ["narrow"]


def test_a_low_terminal_says_how_many_lines_are_missing(resize: Resize) -> None:
    resize(80, 5)
    terminal = io.StringIO()
    screen = LiveScreen(terminal, colour=False)
    for turn in range(3):
        screen.draw([f"{turn} line {number}" for number in range(10)])
    screen.close()
    expected = [*(f"2 line {number}" for number in range(3)), "... 7 more lines; a higher terminal shows them"]
    assert read_screen(terminal.getvalue(), 80, 5) == expected
