"""Sparklines: values over time as bars of one line. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_BARS = "▁▂▃▄▅▆▇█"


def draw_sparkline(values: Sequence[float | None], width: int, top: float = 0.0) -> str:
    """Return values as bars from 0 to the highest of them, at least to `top`; an unknown value is a space.

    More values than columns are averaged, fewer leave the left free.

    Example:
        >>> draw_sparkline([0, 1, 2, None, 8], 6)
        ' ▁▂▃ █'
    """
    heights = list(values) if len(values) <= width else [_average(part) for part in _split_evenly(values, width)]
    highest = max([top, *(value for value in heights if value is not None)])
    bars = "".join(
        " " if value is None else _BARS[round(value / highest * (len(_BARS) - 1)) if highest > 0 else 0]
        for value in heights
    )
    return bars.rjust(width)


def _split_evenly(values: Sequence[float | None], parts: int) -> Iterator[Sequence[float | None]]:
    for at in range(parts):
        yield values[at * len(values) // parts : (at + 1) * len(values) // parts]


def _average(values: Sequence[float | None]) -> float | None:
    measured = [value for value in values if value is not None]
    return sum(measured) / len(measured) if measured else None
