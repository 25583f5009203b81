"""The order of rows, and which of them is the best."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from riseml.analysis.column_names import split_names
from riseml.analysis.filters import describe_mixed
from riseml.analysis.rows import Columns, ComparableReader, ResultRow
from riseml.base.records import dataclass
from riseml.spec.config.types import BEST_VALUE, Goal, SearchSection, ValueKind, ValueRule
from riseml.spec.scalars.fronts import rank_fronts

_MOST_KEYS = 10


@dataclass(frozen=True, slots=True)
class SortKey:
    """One column to sort by."""

    name: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Objective:
    """The metric by which rows are ranked, and its goal."""

    metric: str
    goal: Goal
    rule: ValueRule = BEST_VALUE  # which value of a run counts


def find_objective(search: SearchSection) -> Objective:
    """Return what a search compares its trials by; of several objectives the first one."""
    return list_objectives(search)[0]


def list_objectives(search: SearchSection) -> tuple[Objective, ...]:
    """Return all that a search compares its trials by. The same kind of value counts of each metric."""
    return tuple(Objective(metric, goal, search.objective) for metric, goal in search.objectives)


def make_limit(metric: str) -> Objective:
    """Return what a constraint compares of a metric: the last value of a run, of which none has a better one."""
    return Objective(metric, Goal.MINIMIZE, ValueRule(ValueKind.LAST))


def parse_sort(text: str) -> tuple[SortKey, ...]:
    """Return the columns of `--sort`: `-accuracy,time` is the largest accuracy first, then the shortest time."""
    names = list(split_names(text))[:_MOST_KEYS]
    return tuple(SortKey(name.removeprefix("-"), name.startswith("-")) for name in names if name.strip("-"))


def choose_objective(
    keys: Sequence[SortKey],
    metrics: frozenset[str],
    objective: Objective | None = None,
    parameters: frozenset[str] = frozenset(),
) -> Objective | None:
    """Return what the rows are ranked by: the first key if it is a metric, or without keys what the set searches for.

    A name that a parameter and a metric have is the parameter, as in every column. A goal that the set has counts also
    where the user sorts the other way round: then the rows are only shown in the other order.
    """
    if not keys:
        return objective
    first = keys[0]
    kind, metric, part = Columns(parameters, metrics).resolve(first.name)
    if kind != "metrics" or part not in ("", "best", "last", "min", "max"):
        return objective
    if objective is not None and objective.metric == metric:
        return objective
    rule = ValueRule(ValueKind.LAST) if part == "last" else BEST_VALUE
    return Objective(metric, Goal.MAXIMIZE if first.descending else Goal.MINIMIZE, rule)


def sort_rows(rows: Sequence[ResultRow], keys: Sequence[SortKey], columns: Columns) -> list[ResultRow]:
    """Return the rows in this order: numbers before texts, and rows without a value at the end.

    Raises:
        UsageError: no row has a column of this name.
    """
    ordered = sorted(rows, key=lambda row: row.number)
    for key in reversed(keys):  # sorting is stable, so that the first key is applied last
        if key.name == "id":  # 144.9 is before 144.10
            ordered.sort(key=lambda row: row.number, reverse=key.descending)
            continue
        read = columns.find_comparable(key.name)
        ordered = _sort_by(ordered, read, descending=key.descending)
    return ordered


def _sort_by(rows: Sequence[ResultRow], read: ComparableReader, *, descending: bool) -> list[ResultRow]:
    numbers: list[tuple[float | Decimal, ResultRow]] = []
    texts: list[tuple[str, ResultRow]] = []
    missing: list[ResultRow] = []
    for row in rows:
        value = read(row)
        if isinstance(value, str):
            texts.append((value, row))
        elif value is None or math.isnan(value):
            missing.append(row)
        else:
            numbers.append((value, row))
    numbers.sort(key=lambda pair: pair[0], reverse=descending)
    texts.sort(key=lambda pair: pair[0], reverse=descending)
    return [*(row for _, row in numbers), *(row for _, row in texts), *missing]


def list_sort_notes(rows: Sequence[ResultRow], keys: Sequence[SortKey], columns: Columns) -> Iterator[str]:
    """Yield a sentence about each parameter that sorts the rows and mixes numbers and texts."""
    for key in keys:
        kind, name, _ = columns.resolve(key.name)
        if kind == "parameters":
            texts = Counter(text for row in rows if (text := row.parameters.get(name)) is not None)
            yield from describe_mixed(name, texts, "the numbers come first")


def rank_rows(rows: Sequence[ResultRow], objective: Objective) -> Mapping[str, int]:
    """Return the rank of each row by its name, the best one first. Equal values have equal ranks.

    An experiment that failed or was killed has no rank, and neither has one without a value, or beyond the constraints
    of its search.
    """
    ranked: list[tuple[float, str]] = []
    for row in rows:
        if row.value is not None and _may_rank(row):
            ranked.append((row.value, row.name))
    ranked.sort(key=lambda pair: pair[0], reverse=objective.goal is Goal.MAXIMIZE)
    ranks: dict[str, int] = {}
    last: tuple[float, int] | None = None
    for place, (best, name) in enumerate(ranked, 1):
        if last is None or last[0] != best:
            last = best, place
        ranks[name] = last[1]
    return ranks


def rank_by_fronts(rows: Sequence[ResultRow], objectives: Sequence[Objective]) -> Mapping[str, int]:
    """Return the front of each row by its name: 1 where no row is better in one objective and as good in the others, 2
    where only rows of the first front are. A row that lacks a value has no rank; else those of `rank_rows` have one.
    """
    ranked: dict[str, tuple[float, ...]] = {}
    for row in rows:
        if _may_rank(row) and all(objective.metric in row.scores for objective in objectives):
            ranked[row.name] = tuple(
                row.scores[objective.metric] * (-1.0 if objective.goal is Goal.MAXIMIZE else 1.0)
                for objective in objectives
            )
    return dict(zip(ranked, rank_fronts(list(ranked.values())), strict=True))


def _may_rank(row: ResultRow) -> bool:
    return row.state not in ("FAILED", "KILLED") and not row.beyond


def sort_by_rank(rows: Sequence[ResultRow], ranks: Mapping[str, int]) -> list[ResultRow]:
    """Return the rows by their ranks; rows without a rank keep their order, at the end."""
    ranked = sorted((row for row in rows if row.name in ranks), key=lambda row: ranks[row.name])
    return [*ranked, *(row for row in rows if row.name not in ranks)]
