"""A view that `rich.live` redraws in place on a terminal.

`printer` imports this module when it draws for the first time, because the import of rich takes 40 ms.

Each frame reaches the terminal as one write between the marks of a synchronized update: the terminal shows the old
frame or the new one, and nothing between. Terminals that do not know the marks ignore them. The screen is the usual
one: what was above the view stays there, and the last frame stays when the view ends.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Sequence
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

_BEGIN = "\x1b[?2026h"  # begins a synchronized update
_END = "\x1b[?2026l"
_CLEAR = "\x1b[H\x1b[2J"


class _FrameConsole(Console):
    """Leaves the cursor visible: after SIGTERM, SIGKILL or Ctrl-Z no program would show it again."""

    def show_cursor(self, show: bool = True) -> bool:  # noqa: FBT001, FBT002  # the signature of rich
        del show
        return False


class LiveScreen:
    """Draws frames over each other.

    Args:
        out: the terminal.
        colour: whether the lines may have colours.
        stays: whether the last frame stays when the screen is closed; otherwise it is erased.

    Example:
        screen = LiveScreen(sys.stdout, colour=True)
        screen.draw(["4.master  RUNNING"])
        screen.close()
    """

    def __init__(self, out: TextIO, *, colour: bool, stays: bool = True) -> None:
        self._out = out
        self._stays = stays
        self._lines: Sequence[str] = ()  # lines of the last frame
        self._frame = io.StringIO()  # rich draws here
        self._console = _FrameConsole(
            file=self._frame,
            force_terminal=True,
            force_interactive=True,
            color_system="standard" if colour else None,
            no_color=not colour,
            legacy_windows=False,
            highlight=False,
            markup=False,
            emoji=False,
        )
        self._live: Live | None = None
        self._size = shutil.get_terminal_size()

    def draw(self, lines: Sequence[str]) -> None:
        """Draw a frame in the place of the one before. The lines must be clean; their colours stay.

        Lines for which the terminal is too low are left out; the last line says how many.
        """
        size = shutil.get_terminal_size()
        if self._live is not None and size != self._size:
            # A terminal re-wraps long lines when its size changes, so the command no longer knows where the frame is.
            self._stop()
            self._frame.write(_CLEAR)
        self._size = size
        self._draw_frame(lines)
        self._flush()

    def print_above(self, text: str) -> None:
        """Print lines that stay, each with its newline, above the frame."""
        self._stop(leave=False)
        self._frame.write(text)
        self._draw_frame(self._lines)
        self._flush()

    def close(self) -> None:
        """Leave the last frame on the screen, or erase it; the cursor is at the line after it."""
        self._stop(leave=self._stays)
        self._flush()

    def _draw_frame(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._console.size = (self._size.columns, self._size.lines)
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
            self._live.start()
        frame = Text("\n").join(map(Text.from_ansi, _cut_frame(lines, self._size.lines)))
        frame.no_wrap = True
        frame.overflow = "crop"
        frame.end = ""
        self._live.update(frame, refresh=True)

    def _stop(self, *, leave: bool = True) -> None:
        if self._live is not None:
            self._live.transient = not leave
            self._live.stop()
            self._live = None

    def _flush(self) -> None:
        drawn = self._frame.getvalue()
        self._frame.seek(0)
        self._frame.truncate()
        if drawn:
            self._out.write(f"{_BEGIN}{drawn}{_END}")
            self._out.flush()


def _cut_frame(lines: Sequence[str], height: int) -> Sequence[str]:
    room = max(1, height - 1)  # the line of the cursor stays empty
    if len(lines) <= room:
        return lines
    return [*lines[: room - 1], f"... {len(lines) - room + 1} more lines; a higher terminal shows them"]
