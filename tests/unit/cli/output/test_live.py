"""A view that is drawn again in its own place: no flicker, nothing twice, whatever the size of the terminal is."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from riseml.cli.context import wait_or_resize
from riseml.cli.output.live import LiveScreen
from riseml.cli.output.monitor_view import list_use
from riseml.cli.output.sparklines import draw_sparkline
from riseml.cli.output.style import Style
from riseml.cli.output.widths import measure_width
from tests.support.screen import Screen, read_screen
from tests.unit.results.live_samples import watch

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


def test_a_wait_ends_when_the_terminal_gets_another_size() -> None:
    waited = threading.Event()

    def resize() -> None:
        while not waited.wait(0.01):
            os.kill(os.getpid(), signal.SIGWINCH)

    sender = threading.Thread(target=resize, daemon=True)
    sender.start()
    wait_or_resize(600.0)
    waited.set()
    sender.join()


def test_a_wait_outside_of_the_main_thread_waits() -> None:
    thread = threading.Thread(target=wait_or_resize, args=(0.01,), daemon=True)
    thread.start()
    thread.join()


@pytest.mark.parametrize("words", ["--help", "status", "logs -h", "monitor --help", "train --help"])
def test_a_command_that_draws_nothing_does_not_import_rich(words: str, tmp_path: os.PathLike[str]) -> None:
    code = "import sys; from riseml.cli.main import execute; execute(sys.argv[1:]); print(*sys.modules)"
    home = os.fspath(tmp_path)
    environ = {**os.environ, "RISEML_HOME": home, "RISEML_SERVER": "http://127.0.0.1:9"}
    done = subprocess.run(
        [sys.executable, "-c", code, *words.split()], env=environ, capture_output=True, text=True, check=True, cwd=home
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "riseml" in loaded
    assert loaded & {"rich", "pydantic", "pygments"} == set()


@pytest.mark.parametrize(
    ("values", "width", "shown"),
    [
        ([0, 1, 2, None, 8], 6, " ▁▂▃ █"),
        ([], 3, "   "),
        ([0, 0], 2, "▁▁"),
        ([0, 8, 8, 8], 2, "▅█"),
        ([None, None, 4, None], 2, " █"),
    ],
)
def test_a_sparkline(values: list[float | None], width: int, shown: str) -> None:
    assert draw_sparkline(values, width) == shown


def test_a_sparkline_reaches_to_what_was_asked_for() -> None:
    assert draw_sparkline([50.0], 1, 100.0) == "▅"


@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_a_live_monitor_fits_and_has_the_content_of_a_pipe(width: int, *, colour: bool) -> None:
    jobs = {f"4.{job}": {"lines": 10.0 if job != "worker.2" else 3.0} for job in ("master", "worker.1", "worker.2")}
    samples, trends = watch(jobs)
    painted = list_use(samples, Style(colour, width), trends, sparks=True)
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in painted]
    assert all(measure_width(line) <= width for line in lines)
    assert any("▁" in line or "█" in line for line in lines)
    text = " ".join(" ".join(lines).split())
    piped = list_use(samples, Style(), trends)
    cells = {cell.strip() for line in piped[1:4] for cell in re.split(" {2,}", line)}
    assert {cell for cell in cells if cell not in text} == set()
    assert piped[-1] in text
    assert "4.worker.2 !" in text
