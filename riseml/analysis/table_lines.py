"""The lines of a table of experiments: the experiments, or groups of them that open. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from riseml.analysis.rows import Reader, ResultRow, Value

_MOMENTS: Mapping[str, Callable[..., str | None]] = {"created": min, "started": min, "ended": max}
"""Which moment stands for those of a group, by the names of columns."""


class Line(NamedTuple):
    """One line: an experiment, or a group of experiments."""

    rows: tuple[ResultRow, ...]  # one, or those of the group
    group: str = ""  # the key that opens the group; empty: it is an experiment
    is_open: bool = False
    is_inside: bool = False  # it is an experiment of an open group


class GroupCell(NamedTuple):
    """What a group shows in one column."""

    value: Value
    is_mixed: bool = False  # its experiments differ: a number is their mean, and a text says how many values there are


def list_lines(rows: Sequence[ResultRow], readers: Mapping[str, Reader], opened: Collection[str]) -> list[Line]:
    """Return the lines of a table, in the order of the rows: a group is where its first experiment is.

    Args:
        rows: the experiments in their order.
        readers: of the columns by which they are grouped, by their names; empty: they are not grouped. An experiment
            outside of a set is not grouped by `set`.
        opened: keys of the groups that are open.
    """
    if not readers:
        return [Line((row,)) for row in rows]
    groups: dict[str, list[ResultRow]] = {}
    for row in rows:
        values = [_write_value(read(row)) for read in readers.values()]
        alone = tuple(readers) == ("set",) and values == [None]
        groups.setdefault(row.name if alone else json.dumps(values), []).append(row)
    lines: list[Line] = []
    for key, members in groups.items():
        if not key.startswith("["):
            lines.append(Line(tuple(members)))
            continue
        is_open = key in opened
        lines.append(Line(tuple(members), key, is_open))
        lines += [Line((row,), is_inside=True) for row in members] if is_open else []
    return lines


def summarize(rows: Sequence[ResultRow], read: Reader, name: str = "") -> GroupCell:
    """Return what a group shows in a column: the value that all have, the mean of numbers, or how many values differ.
    Of moments it is the first or the last one.

    Numbers that are not finite, and missing ones, have no part in a mean.
    """
    values = [read(row) for row in rows]
    if name in _MOMENTS:
        return GroupCell(_MOMENTS[name]((value for value in values if isinstance(value, str)), default=None))
    several = {value for value in values if value is not None}
    if len(several) <= 1:
        return GroupCell(next(iter(several), None), is_mixed=bool(several) and None in values)
    numbers = [value for value in values if isinstance(value, float) and math.isfinite(value)]
    if len(numbers) == len([value for value in values if value is not None]):
        return GroupCell(math.fsum(numbers) / len(numbers), is_mixed=True)
    return GroupCell(f"{len(several)} values", is_mixed=True)


def _write_value(value: Value) -> str | None:
    """Return a value as a part of a key."""
    return value if value is None or isinstance(value, str) else repr(value)
