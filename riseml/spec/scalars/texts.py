"""A text as a message shows it, and the error for a text that cannot be read."""

from __future__ import annotations

import re

_INVALID = re.compile("[\0\ud800-\udfff]")
_LONGEST_QUOTE = 60  # characters

NO_METRIC_NAME = "{} is not the name of a metric", "write up to 64 printable characters, of any script"
"""The problem and the hint for a text that is not a name of a metric."""


class BadText(Exception):
    """A text that does not have the form that its key requires.

    `problem` says what is wrong, `hint` what to write instead; `hint` is empty when there is nothing to add.
    """

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint


def is_valid_text(text: str) -> bool:
    """Return True for a text that every process and store accepts: without NUL characters and halves of surrogate
    pairs. Python reads bytes that are not UTF-8 as such halves.
    """
    return _INVALID.search(text) is None


def make_valid(text: str) -> str:
    r"""Return a text with escapes in place of what `is_valid_text` refuses, such as bytes of a file name.

    Example:
        >>> make_valid("caf\udce9.py")
        'caf\\udce9.py'
    """
    return _INVALID.sub(lambda match: ascii(match[0])[1:-1], text)


def quote_text(text: str) -> str:
    """Return a text in double quotes on one line, shortened when it is long."""
    short = text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}..."
    flat = short.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(char if char.isprintable() else ascii(char)[1:-1] for char in flat) + '"'
