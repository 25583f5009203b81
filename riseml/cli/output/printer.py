"""Print: results to standard output, messages to standard error. No other module writes to a stream."""

from __future__ import annotations

import io
import os
import shutil
import stat
import sys
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from typing import TYPE_CHECKING, TextIO, TypeVar

from riseml.base.errors import RisemlError
from riseml.base.records import dataclass
from riseml.cli.output import problem_lines
from riseml.cli.output.style import Style
from riseml.cli.output.text import clean_lines, clean_text, escape_json

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.output.live import LiveScreen
    from riseml.spec.yaml.problems import Problem

Piece = TypeVar("Piece", bytes, memoryview)

_LONGEST_LINE = 2**20  # bytes that one printed line of a file may have on a terminal


@dataclass(slots=True)
class Printer:
    """Prints to two streams.

    Example:
        Printer(sys.stdout, sys.stderr).print_lines(["Experiment 4 FINISHED"])
    """

    out: TextIO  # results
    err: TextIO  # messages
    colour: bool = False  # in `out`
    err_colour: bool = False  # in `err`
    live: bool = False  # `out` is a terminal on which lines can be redrawn
    _screen: LiveScreen | None = None  # what `redraw` draws on
    _stays: bool = True  # the lines of `_screen` stay
    _lock: threading.RLock = field(default_factory=threading.RLock)  # `ProgressFooter` draws in another thread

    @property
    def style(self) -> Style:
        """How views must look here. The width is measured now, because users resize terminals."""
        return Style(self.colour, shutil.get_terminal_size().columns if self.live else None)

    @property
    def draws_bars(self) -> bool:
        """True when `out` is a terminal that shows the bars of a sparkline."""
        return self.live and (self.out.encoding or "utf-8").lower().startswith("utf")

    def find_files(self) -> frozenset[tuple[int, int]]:
        """Return device and inode number of each file that a stream is redirected to: `riseml train > train.log`."""
        files = (_find_file(stream) for stream in (self.out, self.err))
        return frozenset(file for file in files if file is not None)

    def print_lines(self, lines: Sequence[str]) -> None:
        """Print lines of the result."""
        self.print_clean_lines(clean_lines(lines, colours=self.colour))

    def print_clean_lines(self, lines: Sequence[str]) -> None:
        """Print lines that are clean already, such as those of `LogFormatter`; checking so many twice is slow."""
        text = "\n".join(lines) + "\n" if lines else ""
        with self._lock:
            if self._screen is not None and not self._stays:
                self._screen.print_above(text)
                return
            self.end_redraw()
            self.out.write(text)
            self.out.flush()

    def print_pages(self, lines: Sequence[str], environ: Mapping[str, str]) -> None:
        """Print lines of the result; on a terminal, in the user's pager."""
        from riseml.cli.output.pager import show_in_pager

        safe = clean_lines(lines, colours=self.colour)
        self.out.flush()
        if not (self.out.isatty() and show_in_pager(safe, environ)):
            self.print_clean_lines(safe)

    def print_bytes(self, pieces: Iterable[bytes]) -> None:
        """Print the bytes of a file as they are; on a terminal, print clean lines of text."""
        raw = getattr(self.out, "buffer", None)
        if raw is not None and not self.live:
            self.out.flush()
            for piece in pieces:
                raw.write(piece)
            raw.flush()
            return
        open_line = b""
        for piece in pieces:
            *whole, open_line = (open_line + piece).split(b"\n")
            self.print_lines([line.decode("utf-8", "backslashreplace") for line in whole])
            if len(open_line) > _LONGEST_LINE:
                self.print_lines([open_line.decode("utf-8", "backslashreplace")])
                open_line = b""
        if open_line:
            self.print_lines([open_line.decode("utf-8", "backslashreplace")])

    def begin_line(self, text: str) -> None:
        """Print the beginning of a line; `print_lines` completes it."""
        self.out.write(text)
        self.out.flush()

    def show_sync(self, pieces: Iterator[Piece], size: int) -> Generator[Piece, None, None]:
        """Yield what a sync sends, piece by piece; draw how much of `size` bytes is sent, on a terminal."""
        from riseml.cli.output.sync_progress import show_sync

        return show_sync(pieces, size, self)

    def print_json(self, value: object) -> None:
        """Print one JSON document on one line, so that several of them are NDJSON."""
        import json

        self.print_clean_lines([escape_json(json.dumps(value, ensure_ascii=False))])

    def redraw(self, lines: Sequence[str], *, stays: bool = True) -> None:
        """Print lines over those of the last `redraw`; without a terminal, below them.

        Args:
            lines: of the view.
            stays: the next output comes below these lines. False: results are printed above them, and they are erased
                at the end, or before a message.
        """
        if not self.live:
            self.print_lines([*lines, ""])
            return
        safe = clean_lines(lines, colours=self.colour)
        with self._lock:
            if self._screen is None:
                from riseml.cli.output.live import LiveScreen

                self._screen = LiveScreen(self.out, colour=self.colour, stays=stays)
                self._stays = stays
            self._screen.draw(safe)

    def end_redraw(self) -> None:
        """Leave the lines of the last `redraw` on the screen, or erase them. The next `redraw` begins a new place."""
        with self._lock:
            if self._screen is not None:
                self._screen.close()
                self._screen = None

    def hold(self) -> AbstractContextManager[bool]:
        """Return the lock that keeps other threads from printing."""
        return self._lock

    def say(self, *messages: str) -> None:
        """Print messages that are not part of the result."""
        self._write_messages(map(clean_text, messages))

    def warn(self, message: str) -> None:
        """Print a warning: something that the user should change."""
        self._write_messages(problem_lines.describe_warning(message, colour=self.err_colour))

    def print_notes(self, notes: Iterable[str]) -> None:
        """Print remarks that need no action."""
        self._write_messages(problem_lines.describe_note(note, colour=self.err_colour) for note in notes)

    def print_problems(self, problems: Sequence[Problem], name: str, source: str) -> None:
        """Print problems of the file `name`, each with its line of `source`."""
        self._write_messages(problem_lines.describe_problems(problems, name, source, colour=self.err_colour))

    def print_error(self, error: RisemlError) -> None:
        """Print an error and its hint."""
        self._write_messages(problem_lines.describe_error(error, colour=self.err_colour))

    def print_json_error(self, error: wire.CommandError) -> None:
        """Print an error as one JSON document on one line of standard error."""
        import json

        self._write_messages([escape_json(json.dumps(error, ensure_ascii=False))])

    def _write_messages(self, lines: Iterable[str]) -> None:
        safe = clean_lines(list(lines), colours=self.err_colour)
        with self._lock:
            self.end_redraw()
            try:
                self.err.write("".join(f"{line}\n" for line in safe))
                self.err.flush()
            except OSError:
                self.err = io.StringIO()  # standard error is closed or full; the command itself must go on


def make_printer(environ: Mapping[str, str]) -> Printer:
    """Return a printer to this process's streams; colours only on a terminal, or as NO_COLOR and FORCE_COLOR say."""
    out, err = (_prepare_stream(stream) for stream in (sys.stdout, sys.stderr))
    return Printer(out, err, _wants_colour(out, environ), _wants_colour(err, environ), _is_live(out, environ))


def _find_file(stream: TextIO) -> tuple[int, int] | None:
    """Return device and inode number of a stream's file; None for a terminal, a pipe or a stream in memory."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):  # io.UnsupportedOperation is both
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def _prepare_stream(stream: TextIO | None) -> TextIO:
    if stream is None:  # the parent process closed it before this process started
        return io.StringIO()
    if isinstance(stream, io.TextIOWrapper):
        # A name that is not UTF-8, or a terminal that supports only ASCII, must not end a command.
        stream.reconfigure(errors="backslashreplace", line_buffering=True)
    return stream


def _is_live(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Return whether lines can be redrawn: whether `out` is a terminal that can move its cursor."""
    return stream.isatty() and environ.get("TERM") != "dumb"


def _wants_colour(stream: TextIO, environ: Mapping[str, str]) -> bool:
    if environ.get("NO_COLOR"):
        return False
    return bool(environ.get("FORCE_COLOR")) or (stream.isatty() and environ.get("TERM") != "dumb")


def discard_output() -> None:
    """Send what is still printed to /dev/null, because the reader of standard output is gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
