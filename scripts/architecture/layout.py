"""Where the boxes and lines of a layered graph are: rows are given, lines go down and cross as little as possible.

A line over several rows passes each row in between through a gap of its own (a point without a box). The order in the
rows comes from barycentres and a local search; the places in a row are the closest ones to the neighbours' places that
keep the distances (isotonic regression).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

Rows = list[list[str]]
Edge = tuple[str, str]

_GAP_WIDTH = 26  # pixels of a row that a passing line takes
_SPACE = 26  # pixels between two neighbours in a row
_SWEEPS = 40


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of boxes and lines, in pixels from the left."""

    rows: Rows  # names of boxes and gaps in each row, from the left
    centres: Mapping[str, float]  # of boxes and gaps
    paths: Mapping[Edge, tuple[str, ...]]  # edge -> source, gaps, target
    width: float


def arrange_boxes(rows: Sequence[Sequence[str]], edges: Sequence[Edge], box_width: int) -> Layout:
    """Return the layout of a graph.

    Args:
        rows: the boxes of each row, from the top down.
        edges: from a box to one in a lower row, or in the same row.
        box_width: pixels.
    """
    filled, paths = _add_gaps(rows, edges)
    segments = [segment for path in paths.values() for segment in pairwise(path)]
    level = [edge for edge in edges if edge not in paths]
    ordered = _order_rows(filled, segments, level)
    boxes = {name for row in rows for name in row}
    widths = {name: box_width if name in boxes else _GAP_WIDTH for row in ordered for name in row}
    centres = _place_rows(ordered, segments, widths)
    left = min(centre - widths[name] / 2 for name, centre in centres.items())
    # Python 3.12 sums floats more exactly than 3.11; rounded, both give the same places.
    centres = {name: round(centre - left, 3) for name, centre in centres.items()}
    return Layout(ordered, centres, paths, max(centre + widths[name] / 2 for name, centre in centres.items()))


def _add_gaps(rows: Sequence[Sequence[str]], edges: Sequence[Edge]) -> tuple[Rows, dict[Edge, tuple[str, ...]]]:
    """Return the rows with a gap for each line that passes, and the path of each line between two rows."""
    row_of = {name: index for index, row in enumerate(rows) for name in row}
    filled = [list(row) for row in rows]
    paths: dict[Edge, tuple[str, ...]] = {}
    for source, target in edges:
        between = range(row_of[source] + 1, row_of[target])
        gaps = [f"{source}>{target}@{index}" for index in between]
        for index, gap in zip(between, gaps, strict=True):
            filled[index].append(gap)
        if row_of[source] != row_of[target]:
            paths[source, target] = (source, *gaps, target)
    return filled, paths


def _order_rows(rows: Rows, segments: Sequence[Edge], level: Sequence[Edge]) -> Rows:
    """Return the rows in an order with few crossings; boxes of one row that import each other become neighbours."""
    best = [list(row) for row in rows]
    current = [list(row) for row in rows]
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for index in range(1, len(rows)) if down else range(len(rows) - 2, -1, -1):
            fixed = current[index - 1 if down else index + 1]
            current[index] = _sort_by_barycentre(current[index], fixed, segments)
        if _cost(current, segments, level) < _cost(best, segments, level):
            best = [list(row) for row in current]
    while _improve_once(best, segments, level):
        pass
    return best


def _sort_by_barycentre(row: list[str], fixed: list[str], segments: Sequence[Edge]) -> list[str]:
    place = {name: index for index, name in enumerate(fixed)}

    def barycentre(name: str) -> float:
        places = [place[other] for edge in segments if name in edge for other in edge if other in place]
        return sum(places) / len(places) if places else row.index(name)

    return sorted(row, key=barycentre)


def _improve_once(rows: Rows, segments: Sequence[Edge], level: Sequence[Edge]) -> bool:
    """Move one box or gap to another place of its row if that lowers the cost; return False when no move does."""
    cost = _cost(rows, segments, level)
    for index, row in enumerate(rows):
        for name in tuple(row):
            for place in range(len(row)):
                moved = [other for other in row if other != name]
                moved.insert(place, name)
                if _cost([*rows[:index], moved, *rows[index + 1 :]], segments, level) < cost:
                    rows[index] = moved
                    return True
    return False


def _cost(rows: Rows, segments: Sequence[Edge], level: Sequence[Edge]) -> int:
    place = {name: index for row in rows for index, name in enumerate(row)}
    row_of = {name: index for index, row in enumerate(rows) for name in row}
    crossings = sum(
        (place[a] - place[c]) * (place[b] - place[d]) < 0
        for (a, b), (c, d) in combinations(segments, 2)
        if row_of[a] == row_of[c]
    )
    return crossings + 10 * sum(abs(place[a] - place[b]) - 1 for a, b in level)


def _place_rows(rows: Rows, segments: Sequence[Edge], widths: Mapping[str, int]) -> dict[str, float]:
    """Return the centre of every box and gap, near the centres of its neighbours above and below."""
    neighbours: dict[str, list[str]] = {name: [] for row in rows for name in row}
    for source, target in segments:
        neighbours[source].append(target)
        neighbours[target].append(source)
    centres: dict[str, float] = {}
    for row in rows:
        centres |= _keep_distances(row, dict.fromkeys(row, 0.0), widths)
    for _ in range(_SWEEPS):
        for row in rows:
            means = {
                name: sum(centres[other] for other in neighbours[name]) / len(neighbours[name])
                if neighbours[name]
                else centres[name]
                for name in row
            }
            centres |= _keep_distances(row, means, widths)
    return centres


def _keep_distances(row: list[str], goals: Mapping[str, float], widths: Mapping[str, int]) -> dict[str, float]:
    """Return the places closest to the goals at which neighbours keep their distance."""
    offsets = [0.0]
    for left, right in pairwise(row):
        offsets.append(offsets[-1] + (widths[left] + widths[right]) / 2 + _SPACE)
    blocks: list[tuple[float, int]] = []  # mean of the members, number of members
    for name, offset in zip(row, offsets, strict=True):
        mean = goals[name] - offset
        size = 1
        while blocks and blocks[-1][0] > mean:
            before, count = blocks.pop()
            mean = (before * count + mean * size) / (count + size)
            size += count
        blocks.append((mean, size))
    means = [mean for mean, size in blocks for _ in range(size)]
    return {name: mean + offset for name, mean, offset in zip(row, means, offsets, strict=True)}
