"""The only printer: results to standard output, everything said beside them to standard error."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from riseml.cli.output import lines, text
from riseml.errors import RisemlError

if TYPE_CHECKING:
    from riseml.spec.yaml.problems import Problem


@dataclass(slots=True)
class Render:
    """Prints to two streams. `colour` is for `out`, `err_colour` for `err`; `live` means that `out` is a terminal."""

    out: TextIO
    err: TextIO
    colour: bool = False
    err_colour: bool = False
    live: bool = False
    _drawn: int = 0

    @property
    def width(self) -> int | None:
        """Columns of the terminal; None when there is none to fit into."""
        return shutil.get_terminal_size().columns if self.live else None

    def print(self, *shown: str) -> None:
        """Lines of the result, written at once."""
        if shown:
            self.out.write("\n".join(shown) + "\n")
        self.out.flush()

    def begin(self, shown: str) -> None:
        """The beginning of a line that `print` ends."""
        self.out.write(shown)
        self.out.flush()

    def json(self, value: object) -> None:
        """One JSON document on one line, so that several of them are NDJSON."""
        self.print(json.dumps(value, ensure_ascii=False))

    def table(self, columns: Sequence[text.Column], rows: Sequence[Sequence[str]]) -> None:
        """A table that fits the terminal, as wide as it likes elsewhere."""
        self.print(*self.table_lines(columns, rows))

    def table_lines(self, columns: Sequence[text.Column], rows: Sequence[Sequence[str]]) -> list[str]:
        """The lines of `table`, for a live view."""
        cells = [[text.clean(cell) for cell in row] for row in rows]
        return text.table(columns, cells, self.width)

    def redraw(self, shown: Sequence[str]) -> None:
        """Lines in the place of those of the last `redraw`; without a terminal below them."""
        if not self.live:
            self.print(*shown, "")
            return
        size = shutil.get_terminal_size()
        # A line that wrapped, or that scrolled away, could not be drawn over.
        kept = [line[: size.columns] for line in shown][: size.lines - 1]
        up = f"\x1b[{self._drawn}A" if self._drawn else ""
        self.out.write(f"\r{up}\x1b[J" + "".join(line + "\n" for line in kept))
        self.out.flush()
        self._drawn = len(kept)

    def say(self, *shown: str) -> None:
        """Something beside the result."""
        self._tell(map(text.clean, shown))
        self._drawn = 0  # what was drawn stays above it

    def warn(self, message: str) -> None:
        """Something that the user should change."""
        self._tell(lines.describe_warning(message, colour=self.err_colour))

    def notes(self, notes: Iterable[str]) -> None:
        """Remarks that are no problems."""
        self._tell(f"{lines.paint('note:', '1;36', colour=self.err_colour)} {text.clean(note)}" for note in notes)

    def problems(self, problems: Sequence[Problem], name: str, source: str) -> None:
        """Problems of the file `name`, each with its line."""
        self._tell(lines.describe_problems(problems, name, source, colour=self.err_colour))

    def error(self, error: RisemlError) -> None:
        """What went wrong, and what to do next."""
        self._tell(lines.describe_error(error, colour=self.err_colour))

    def _tell(self, shown: Iterable[str]) -> None:
        try:
            self.err.write("".join(f"{line}\n" for line in shown))
            self.err.flush()
        except OSError:
            self.err = io.StringIO()  # nobody can be told; that must not end what the command does


def make_render(environ: Mapping[str, str]) -> Render:
    """For this process's streams; colours only for a terminal, unless NO_COLOR or FORCE_COLOR say otherwise."""
    out, err = (_prepare(stream) for stream in (sys.stdout, sys.stderr))
    return Render(out, err, _wants_colour(out, environ), _wants_colour(err, environ), out.isatty())


def _prepare(stream: TextIO | None) -> TextIO:
    if stream is None:  # it was closed before we began
        return io.StringIO()
    if isinstance(stream, io.TextIOWrapper):
        # A name that is no UTF-8, or a terminal that knows only ASCII, must not end a command.
        stream.reconfigure(errors="backslashreplace", line_buffering=True)
    return stream


def _wants_colour(stream: TextIO, environ: Mapping[str, str]) -> bool:
    if environ.get("NO_COLOR"):
        return False
    return bool(environ.get("FORCE_COLOR")) or (stream.isatty() and environ.get("TERM") != "dumb")


def silence() -> None:
    """Let nothing more be printed: the reader of our output is gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
