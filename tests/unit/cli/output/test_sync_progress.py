"""The bar of a sync: on a terminal, when it takes a while."""

from __future__ import annotations

import io
from collections.abc import Generator
from contextlib import closing
from itertools import islice

import pytest

from riseml.cli.output.printer import Printer
from riseml.cli.output.sync_progress import show_sync
from tests.support.screen import read_screen
from tests.unit.cli.explanations import MB


def _sync(printer: Printer, seconds: float) -> Generator[bytes, None, None]:
    """Return the pieces of a sync in which each of ten pieces takes `seconds`."""
    times = iter(seconds * number for number in range(100))
    return show_sync(iter([b"x" * MB] * 10), 10 * MB, printer, lambda: next(times))


def test_a_sync_that_takes_a_while_has_a_bar_that_goes_away() -> None:
    terminal = io.StringIO()
    printer = Printer(terminal, terminal, live=True)
    printer.begin_line("Syncing project (10.0 MB, 1 file)...")
    shown: list[str] = []
    for piece in _sync(printer, 1.0):
        assert len(piece) == MB
        shown.append(terminal.getvalue())
    printer.print_lines(["done"])
    assert "8.0 MB of 10.0 MB, 1.0 MB/s, 0:02 left" in shown[-1]
    assert read_screen(terminal.getvalue(), 80, 24) == ["Syncing project (10.0 MB, 1 file)...", "done"]


def test_a_sync_that_ends_early_takes_its_bar_away() -> None:
    terminal = io.StringIO()
    printer = Printer(terminal, terminal, live=True)
    printer.begin_line("Syncing project (10.0 MB, 1 file)...")
    with closing(_sync(printer, 1.0)) as pieces:
        assert len(list(islice(pieces, 5))) == 5
    printer.print_lines(["done"])
    assert "MB of 10.0 MB" in terminal.getvalue()
    assert read_screen(terminal.getvalue(), 80, 24) == ["Syncing project (10.0 MB, 1 file)...", "done"]


@pytest.mark.parametrize(("live", "seconds"), [(True, 0.01), (False, 1.0)])
def test_a_short_sync_and_a_pipe_have_no_bar(seconds: float, *, live: bool) -> None:
    out = io.StringIO()
    assert len(list(_sync(Printer(out, out, live=live), seconds))) == 10
    assert out.getvalue() == ""
