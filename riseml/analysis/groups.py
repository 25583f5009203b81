"""Experiments that differ in their seed alone, as one row: mean, deviation, interval and rank. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from riseml.analysis.rows import ResultRow
from riseml.analysis.seed_statistics import Spread, describe_spread
from riseml.base.records import dataclass
from riseml.spec.config.types import SEED, Goal

_BAD = ("FAILED", "KILLED")


@dataclass(frozen=True, slots=True)
class GroupRun:
    """One run of a group that has a value."""

    name: str  # `144.3`
    seed: str  # empty: it has none
    value: float
    beyond: bool = False  # it fails a constraint of its search


@dataclass(frozen=True, slots=True)
class Group:
    """The runs of one point."""

    names: tuple[str, ...]  # of all its runs, the first one first
    parameters: Mapping[str, str]  # without the seed
    runs: tuple[GroupRun, ...] = ()  # that have finished with a value
    spread: Spread | None = None  # of these values; None: there are none
    failed: int = 0  # runs that failed or were killed, or finished without a value
    stopped: int = 0  # runs that were stopped early; their values are among those of `runs`
    unfinished: int = 0  # runs that still go on, or wait
    beyond: int = 0  # runs that fail a constraint of their search; their values are among those of `runs`

    @property
    def is_whole(self) -> bool:
        """Whether its mean may be compared: every run came to its end, has a value, and meets the constraints."""
        return bool(self.runs) and not (self.failed or self.stopped or self.unfinished or self.beyond)


def group_rows(rows: Sequence[ResultRow], read: Callable[[ResultRow], float | None]) -> list[Group]:
    """Return the groups of experiments of one set whose parameters are equal but for `seed`, in the order of rows.

    Args:
        rows: the experiments.
        read: returns the value of one; None where it has none.
    """
    members: dict[tuple[int, tuple[tuple[str, str], ...]], list[ResultRow]] = {}
    for row in rows:
        point = tuple(sorted(pair for pair in row.parameters.items() if pair[0] != SEED))
        members.setdefault((row.number[0], point), []).append(row)
    return [_make_group(sorted(some, key=lambda row: row.number), read) for some in members.values()]


def _make_group(rows: Sequence[ResultRow], read: Callable[[ResultRow], float | None]) -> Group:
    finished = [(row, read(row)) for row in rows if row.state == "FINISHED"]
    runs = tuple(
        GroupRun(row.name, row.parameters.get(SEED, ""), value, row.beyond)
        for row, value in finished
        if value is not None and math.isfinite(value)
    )
    return Group(
        names=tuple(row.name for row in rows),
        parameters={name: text for name, text in rows[0].parameters.items() if name != SEED},
        runs=runs,
        spread=describe_spread([run.value for run in runs]) if runs else None,
        failed=sum(row.state in _BAD for row in rows) + len(finished) - len(runs),
        stopped=sum(row.reason == "STOPPED_EARLY" for row, _ in finished),
        unfinished=sum(row.state not in (*_BAD, "FINISHED") for row in rows),
        beyond=sum(run.beyond for run in runs),
    )


def rank_groups(groups: Sequence[Group], goal: Goal) -> Mapping[str, int]:
    """Return the rank of each whole group by its mean, the best one first, by the name of its first run."""
    sign = -1.0 if goal is Goal.MAXIMIZE else 1.0
    means = {group.names[0]: sign * group.spread.mean for group in groups if group.is_whole and group.spread}
    ordered = sorted(means.values())
    return {name: 1 + ordered.index(mean) for name, mean in means.items()}


def find_best_run(groups: Sequence[Group], goal: Goal) -> GroupRun | None:
    """Return the best single run of all groups, the first of several: where a group has several, a lucky seed."""
    runs = [run for group in groups for run in group.runs if not run.beyond]
    sign = -1.0 if goal is Goal.MAXIMIZE else 1.0
    return min(runs, key=lambda run: sign * run.value, default=None)
