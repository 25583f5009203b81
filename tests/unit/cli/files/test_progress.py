"""The progress of a copy: a bar on a terminal, the names of the files with `-n`, and nothing elsewhere."""

from __future__ import annotations

import io

import pytest

from riseml.cli.files.progress import CopyProgress
from riseml.cli.output.printer import Printer


class Clock:
    """A clock that a test sets, in seconds."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def copy_file(*, live: bool = False, dry: bool = False, quiet: bool = False, seconds: float = 1.0) -> str:
    """Return what is printed while a file of 4 MB is copied to its middle."""
    terminal, clock = io.StringIO(), Clock()
    progress = CopyProgress(Printer(terminal, terminal, live=live), dry=dry, quiet=quiet, clock=clock)
    progress.watch.note_total(4_000_000)
    progress.watch.note_file("output://4/100%25", "got/100%25", 4_000_000)
    clock.now = seconds
    progress.watch.note_bytes(2_000_000)
    return terminal.getvalue()


def test_a_terminal_has_a_bar_when_it_takes_a_while() -> None:
    shown = copy_file(live=True)
    assert "output://4/100%" in shown
    assert "2.0 MB of 4.0 MB, 2.0 MB/s" in shown
    assert copy_file(live=True, seconds=0.4) == ""


def test_a_dry_run_names_the_files() -> None:
    for live in (False, True):
        assert copy_file(live=live, dry=True) == "output://4/100% -> got/100%  4.0 MB\n"


@pytest.mark.parametrize(("live", "dry", "quiet"), [(False, False, False), (True, False, True), (True, True, True)])
def test_nothing_is_printed_elsewhere(*, live: bool, dry: bool, quiet: bool) -> None:
    assert copy_file(live=live, dry=dry, quiet=quiet) == ""
