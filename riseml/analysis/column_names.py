"""Names of columns as users write them: `lr`, `accuracy.last`, `"val loss".max`, `metrics."a, b"`. Pure.

A name in quotes is that of a parameter or metric, whatever is in it; a backslash stands before a quote or backslash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

QUOTED = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'"
"""An expression for a name in quotes."""

SECTIONS = ("parameters", "metrics")
_EXACT = re.compile(rf"(?:(?P<section>{'|'.join(SECTIONS)})\.)?(?P<name>{QUOTED})(?:\.(?P<part>[a-z]+))?", re.DOTALL)
_BETWEEN = re.compile(rf"(?:{QUOTED}|[^,])+", re.DOTALL)
_NEEDS_QUOTES = re.compile(r"[\s<>=!'\",&()\\]|^-")


def split_exact(text: str) -> tuple[str, str, str] | None:
    """Return section, name and part of a name in quotes, each without its marks; None: it has no quotes.

    Example:
        >>> split_exact('metrics."val loss".max')
        ('metrics', 'val loss', 'max')
    """
    match = _EXACT.fullmatch(text)
    if match is None:
        return None
    return match["section"] or "", re.sub(r"\\(.)", r"\1", match["name"][1:-1], flags=re.DOTALL), match["part"] or ""


def split_names(text: str) -> Iterator[str]:
    """Yield the names of a list such as `lr,"a, b".max`, without the spaces around them."""
    for match in _BETWEEN.finditer(text):
        if name := match[0].strip():
            yield name


def quote_name(name: str) -> str:
    """Return a name in quotes."""
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def needs_quotes(name: str) -> bool:
    """Return True for a name that `--where`, `--sort` and `--columns` would not read as one name."""
    return _NEEDS_QUOTES.search(name) is not None
