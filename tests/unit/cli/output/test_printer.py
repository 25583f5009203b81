"""Messages between two drawings of a view."""

from __future__ import annotations

import io

from riseml.cli.output.printer import Printer
from tests.support.screen import read_screen


def test_a_message_between_two_redraws_is_not_drawn_over() -> None:
    terminal = io.StringIO()
    printer = Printer(terminal, terminal, live=True)
    for shown in ("one", "two"):
        printer.redraw([shown])
    printer.say("Lost the riseml server")
    printer.redraw(["three"])
    printer.end_redraw()
    assert read_screen(terminal.getvalue(), 80, 24) == ["two", "Lost the riseml server", "three"]
