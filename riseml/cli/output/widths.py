"""How wide text is on a terminal, in columns. CJK characters and most emoji take two. Pure."""

from __future__ import annotations


def measure_width(text: str) -> int:
    """Return the columns that `text` takes on a terminal.

    `rich.cells` has the tables of Unicode; it is imported (about 4 ms) only when a text is not ASCII.

    Example:
        >>> measure_width("日本")
        4
    """
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cut_to_width(text: str, width: int) -> str:
    """Return the longest beginning of `text` that takes at most `width` columns."""
    if text.isascii():
        return text[:width]
    end = used = 0
    while end < len(text):
        used += measure_width(text[end])
        if used > width:
            break
        end += 1
    return text[:end]


def shorten_to_width(text: str, width: int) -> str:
    """Return `text`, cut with a `…` when it takes more than `width` columns."""
    return text if measure_width(text) <= width else cut_to_width(text, width - 1) + "…"


def pad_to_width(text: str, width: int) -> str:
    """Return `text` filled with spaces to `width` columns."""
    return text + " " * max(0, width - measure_width(text))


def wrap_to_width(text: str, width: int) -> list[str]:
    """Return `text` in lines of at most `width` columns, broken at spaces where possible."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        joined = f"{line} {word}" if line else word
        if measure_width(joined) <= width:
            line = joined
            continue
        if line:
            lines.append(line)
        while measure_width(word) > width:
            piece = cut_to_width(word, width) or word[0]
            lines.append(piece)
            word = word[len(piece) :]
        line = word
    return [*lines, line] if line or not lines else lines
