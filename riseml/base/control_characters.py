"""Characters that could rewrite a terminal, and how they are shown instead. Pure."""

from __future__ import annotations

import re
from functools import cache

# Control characters except the tab and the escape, marks that change the direction of writing, line separators, lone
# surrogates.
OTHERS = "\x00-\x08\x0a-\x1a\x1c-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
ODD = f"[\x1b{OTHERS}]"


@cache
def compile_once(pattern: str) -> re.Pattern[str]:
    """Return a compiled pattern. Most commands print only text that needs none, and compiling takes a millisecond."""
    return re.compile(pattern)


def show_odd(match: re.Match[str]) -> str:
    """Return the escape of one character: `\\x07`."""
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def escape_controls(text: str) -> str:
    """Return text without what could rewrite the terminal; nothing is lost: control characters are shown as `\\x07`,
    line breaks and tabs stay.

    Example:
        >>> escape_controls("a\\r\\nb\\x1b[2J")
        'a\\\\x0d\\nb\\\\x1b[2J'
    """
    return "\n".join(compile_once(ODD).sub(show_odd, line) for line in text.split("\n"))
