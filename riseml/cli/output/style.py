"""Colours, the states that views tell apart, and what a view needs to know about the terminal. Pure."""

from __future__ import annotations

from riseml.base.records import dataclass
from riseml.base.state_words import name_state as name_state  # re-exported: views import all words from here

ENDED_STATES = frozenset({"FAILED", "KILLED", "FINISHED"})
"""States in which nothing of an experiment or a job runs any more."""

BEFORE_OUTPUT = frozenset({"CREATED", "BUILDING", "PENDING", "STARTING"})
"""States in which an experiment does not run yet."""

_STATE_COLOURS = {"FAILED": "1;31", "KILLED": "1;33", "FINISHED": "1;32", "RUNNING": "1"}


@dataclass(frozen=True, slots=True)
class Style:
    """How the lines of a view look."""

    colour: bool = False
    width: int | None = None  # columns of the terminal; None: the output is not a terminal, and lines may be any length


def paint(text: str, code: str, *, colour: bool) -> str:
    """Return `text` in a colour (an SGR code); unchanged without `colour`.

    Example:
        >>> paint("error:", "1;31", colour=True)
        '\\x1b[1;31merror:\\x1b[0m'
    """
    return f"\x1b[{code}m{text}\x1b[0m" if colour and code and text else text


def paint_state(state: str, text: str, *, colour: bool) -> str:
    """Return `text` in the colour of a state."""
    return paint(text, _STATE_COLOURS.get(state, ""), colour=colour)
