"""Show the progress of a copy: a bar on a terminal when it takes a while, or the names of the files with `-n`."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from riseml.cli.output.printer import Printer
from riseml.cli.output.progress import RateMeter, describe_bytes, draw_progress
from riseml.client.copying.copies import CopyWatch
from riseml.files.project.messages import format_size
from riseml.job_programs.folder_paths import show_name

_PATIENCE = 0.5  # seconds without a bar
_INTERVAL = 0.1  # seconds between two frames


class CopyProgress:
    """Draws a bar below what is printed.

    Args:
        printer: draws on a terminal, and nothing elsewhere.
        dry: nothing is copied; the files are named.
        quiet: print neither bar nor names.
        clock: returns seconds.
    """

    def __init__(self, printer: Printer, *, dry: bool, quiet: bool, clock: Callable[[], float] = monotonic) -> None:
        self._printer = printer
        self._names_files = dry and not quiet
        self._draws = printer.live and not dry and not quiet
        self._clock = clock
        self._meter = RateMeter()
        self._began = self._drawn = clock()
        self._meter.add_amount(0, self._began)
        self._done = 0
        self._total = 0
        self._knows_total = True
        self._name = ""
        self.watch = CopyWatch(self._note_file, self._note_bytes, self._note_total, is_dry=dry)

    def close(self) -> None:
        """Erase the bar."""
        if self._draws:
            self._printer.end_redraw()

    def _note_total(self, size: int | None) -> None:
        if size is None:
            self._knows_total = False
        else:
            self._total += size

    def _note_file(self, source: str, target: str, size: int | None) -> None:
        self._name = show_name(source)
        if self._names_files:
            size_text = "link" if size is None else format_size(size)
            self._printer.print_lines([f"{self._name} -> {show_name(target)}  {size_text}"])

    def _note_bytes(self, count: int) -> None:
        self._done += count
        now = self._clock()
        if not self._draws or now < self._began + _PATIENCE or now < self._drawn + _INTERVAL:
            return
        self._drawn = now
        self._meter.add_amount(self._done, now)
        total = max(self._total, self._done) if self._knows_total else None
        fraction = self._done / total if total else None
        amounts = describe_bytes(self._done, total, self._meter.rate)
        self._printer.redraw(draw_progress(self._name, fraction, amounts, self._printer.style), stays=False)
