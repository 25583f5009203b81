"""What a terminal shows after it got some text: as much of a terminal as riseml and rich need."""

from __future__ import annotations

import re
from itertools import groupby
from operator import itemgetter

_TOKEN = re.compile(r"\x1b\[(\??[\d;]*)([A-Za-z])|(.)", re.DOTALL)


_CUT = re.compile(r"\x1b(\[[?\d;]*)?\Z")
Cell = tuple[str, str]
"""A character and its colours, as SGR codes."""


class ScreenError(AssertionError):
    """The text has a sequence that no command should write."""


class Screen:
    """A terminal of a size.

    Example:
        screen = Screen(80, 24)
        screen.feed("one\\r\\n\\x1b[1Atwo")
        assert screen.lines() == ["two"]
    """

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self.cursor_shown = True
        self.painted = False  # it got a colour
        self._above: list[list[Cell]] = []  # what has scrolled away
        self._cells: list[list[Cell]] = [[]]
        self._style = ""  # SGR codes
        self._row = self._column = 0
        self._rest = ""  # the beginning of a sequence

    def feed(self, text: str) -> None:
        """Write text to the terminal; a sequence that it cuts goes on with the next text."""
        text = self._rest + text
        cut = _CUT.search(text)
        self._rest = cut[0] if cut else ""
        for found in _TOKEN.finditer(text.removesuffix(self._rest)):
            if found[3] is not None:
                self._write(found[3])
            else:
                self._control(found[1], found[2])

    def lines(self) -> list[str]:
        """Return all lines, those that have scrolled away first, without empty ones at the end."""
        shown = ["".join(character for character, _ in row).rstrip() for row in (*self._above, *self._cells)]
        while shown and not shown[-1]:
            shown.pop()
        return shown

    def coloured_lines(self) -> list[str]:
        """Return the same lines with their colours, as text for a terminal."""
        rows = [*self._above, *self._cells]
        return [_join_runs(row) for row in rows[: len(self.lines())]]

    def _write(self, character: str) -> None:
        if character == "\n":
            self._go_down()
        elif character == "\r":
            self._column = 0
        elif character == "\t":
            self._column = min(self.columns - 1, self._column // 8 * 8 + 8)
        elif character.isprintable():
            if self._column >= self.columns:  # the line wraps
                self._go_down()
                self._column = 0
            row = self._cells[self._row]
            row.extend([(" ", "")] * (self._column + 1 - len(row)))
            row[self._column] = (character, self._style)
            self._column += 1
        else:
            raise ScreenError(f"{character!r} has no place in a view")

    def _go_down(self) -> None:
        self._row += 1
        if self._row == len(self._cells):
            self._cells.append([])
        if len(self._cells) > self.rows:
            self._above.append(self._cells.pop(0))
            self._row -= 1

    def _control(self, parameter: str, letter: str) -> None:
        match parameter, letter:
            case ("?25", "h" | "l") | ("?2026", "h" | "l"):
                self.cursor_shown = letter == "h" if parameter == "?25" else self.cursor_shown
            case (_, "m"):
                self.painted = True
                self._style = "" if parameter in ("", "0") else f"{self._style};{parameter}".strip(";")
            case ("2", "K"):
                self._cells[self._row] = []
            case (_, "A"):
                self._row = max(0, self._row - int(parameter or 1))
            case ("", "H"):
                self._row = self._column = 0
            case ("2", "J"):
                self._cells = [[] for _ in self._cells]
            case _:
                raise ScreenError(f"a view writes ESC [ {parameter} {letter}")


def read_screen(text: str, columns: int, rows: int) -> list[str]:
    """Return the lines that a terminal of this size shows after the text; a newline alone goes to the first column."""
    screen = Screen(columns, rows)
    screen.feed(text.replace("\r\n", "\n").replace("\n", "\r\n"))
    return screen.lines()


def _join_runs(row: list[Cell]) -> str:
    """Return a row as text for a terminal, with a sequence wherever its colours change."""
    runs = ((style, "".join(character for character, _ in run)) for style, run in groupby(row, itemgetter(1)))
    return "".join(f"\x1b[0;{style}m{text}" if style else f"\x1b[0m{text}" for style, text in runs)
