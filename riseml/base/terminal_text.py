"""Terminal output of other programs as plain text."""

from __future__ import annotations

import re

_ESCAPE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement, erasing
    r"|\x9b[0-?]*[ -/]*[@-~]"  # CSI in one byte
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]).*?(?:\x07|\x1b\\|\x9c|$)"  # OSC, DCS, ...: titles, links, the clipboard
    r"|\x1b[ -/]*[0-~]",  # all others
    re.DOTALL,
)


def plain_line(text: str) -> str:
    r"""Return one line without escape sequences (ECMA-48), and of a progress bar only its last visible state.

    Example:
        >>> plain_line("\x1b[32m 50 %\r100 %\r")
        '100 %'
    """
    text = _ESCAPE.sub("", text)
    if "\r" not in text:
        return text
    return next((state for state in reversed(text.split("\r")) if state.strip()), "")
