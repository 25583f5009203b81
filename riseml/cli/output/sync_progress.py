"""A progress bar for a sync, on a terminal, when sending the files takes a while."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from riseml.cli.output.printer import Printer

Piece = TypeVar("Piece", bytes, memoryview)

_PATIENCE = 0.5  # seconds without a bar
_INTERVAL = 0.1  # seconds between two frames


def show_sync(
    pieces: Iterator[Piece], size: int, printer: Printer, clock: Callable[[], float] = monotonic
) -> Generator[Piece, None, None]:
    """Yield what is sent, piece by piece; draw how much of it is sent.

    Args:
        pieces: contents of files, with their sizes before them.
        size: bytes of all files; the pieces have a few more, or fewer when several files have one content.
        printer: draws only on a terminal; its last line has begun.
        clock: returns seconds.
    """
    if not printer.live:
        yield from pieces
        return
    from riseml.cli.output.progress import RateMeter, describe_bytes, draw_progress

    began = clock()
    meter = RateMeter()
    sent = 0
    drawn = None
    meter.add_amount(0, began)
    try:
        for piece in pieces:
            yield piece
            now = clock()
            sent = min(size, sent + len(piece))
            if now < (began + _PATIENCE if drawn is None else drawn + _INTERVAL):
                continue
            if drawn is None:
                printer.print_lines([""])  # ends the line before
            drawn = now
            meter.add_amount(sent, now)
            amounts = describe_bytes(sent, size, meter.rate)
            printer.redraw(draw_progress("Syncing", sent / size if size else 1.0, amounts, printer.style), stays=False)
    finally:
        printer.end_redraw()
