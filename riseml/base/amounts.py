"""Amounts as people read them: bytes, rates, numbers of three digits. Pure."""

from __future__ import annotations


def format_bytes(size: float) -> str:
    """Return bytes with three digits in the unit that fits: `16 MiB`, `1.02 GiB`, `0 B`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 999.5:
            return f"{format_digits(size)} {unit}"
        size /= 1024
    return f"{format_digits(size)} TiB"


def format_rate(rate: float) -> str:
    """Return a rate per second as text: `12/s`, or `6/min` when it is below 1/s."""
    return f"{format_digits(rate)}/s" if rate >= 1 else f"{format_digits(rate * 60)}/min"


def format_digits(value: float) -> str:
    """Return a number with at most three digits, at most three of them after the decimal point."""
    places = 0 if value >= 99.5 else 1 if value >= 9.95 else 2 if value >= 0.995 else 3
    text = f"{value:.{places}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


def count_noun(count: int, noun: str) -> str:
    """Return `1 file` or `6 files`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
