"""Fronts of points with several objectives (Pareto). Pure."""

from __future__ import annotations

import bisect
from collections.abc import Sequence


def rank_fronts(rows: Sequence[Sequence[float]]) -> list[int]:
    """Return the front of each row: 1 where no row is better, 2 where only rows of the first front are, and so on.

    A row is better than another one if it is less in one number, and more in none.

    Example:
        >>> rank_fronts([(1, 4), (2, 2), (3, 3), (1, 4)])
        [1, 1, 2, 1]
    """
    ranks = [0] * len(rows)
    fronts: list[list[Sequence[float]]] = []
    for at in sorted(range(len(rows)), key=lambda at: tuple(rows[at])):
        row = rows[at]
        # only earlier rows can be better; a row that one of a front beats is also beaten in every front before it
        rank = bisect.bisect_left(fronts, 1, key=lambda front: 0 if _has_better(front, row) else 1)
        if rank == len(fronts):
            fronts.append([])
        fronts[rank].append(row)
        ranks[at] = rank + 1
    return ranks


def _has_better(front: Sequence[Sequence[float]], row: Sequence[float]) -> bool:
    """Return True when a row of a front is better. The last one is the likeliest."""
    return any(_is_better(other, row) for other in reversed(front))


def _is_better(row: Sequence[float], other: Sequence[float]) -> bool:
    return row != other and all(number <= reference for number, reference in zip(row, other, strict=True))
