"""Sizes and paths as messages show them. Pure."""

from __future__ import annotations

import os
from collections.abc import Sequence

MOST_NAMED = 5
"""How many paths one message names."""


def format_size(size: float) -> str:
    """Return bytes as `5.7 MB`: decimal units, as file managers show them.

    Example:
        >>> format_size(5_700_000)
        '5.7 MB'
    """
    if size < 1000:
        return f"{size:.0f} B"
    for unit in ("KB", "MB", "GB"):
        size /= 1000
        if size < 999.95:
            return f"{size:.1f} {unit}"
    return f"{size / 1000:.1f} TB"


def format_path(path: str) -> str:
    """Return a path on one line, with bytes that are not UTF-8 escaped."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return text if text.isprintable() else repr(text)


def join_first(names: Sequence[str]) -> str:
    """Return `a, b, c, d, e and 4 more`."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
