"""The row of one experiment, and the values of its columns."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from decimal import Decimal
from types import MappingProxyType
from typing import NamedTuple, Protocol

from riseml.analysis.column_names import needs_quotes, quote_name, split_exact
from riseml.analysis.numbers import read_exact
from riseml.base.annotations import NO_ANNOTATION, Annotation
from riseml.base.errors import UsageError
from riseml.base.records import dataclass
from riseml.base.state_words import name_state
from riseml.spec.config.types import Goal

Value = str | float | None
"""The value of one column: a text, a number, or None where the row has none. A parameter is the text that its author
wrote."""

Comparable = str | float | Decimal | None
"""A value as rows are chosen and sorted by it: a parameter that is written as a number is that number, exactly."""


class MetricValues(Protocol):
    """What one experiment has reported of one metric."""

    @property
    def count(self) -> int:
        """How many values."""

    @property
    def last(self) -> float:
        """The last value; it may be NaN or infinite."""

    @property
    def last_step(self) -> int | None:
        """Its step; None: it was reported without one."""

    @property
    def minimum(self) -> float | None:
        """The smallest finite value; None: no value is finite."""

    @property
    def maximum(self) -> float | None:
        """The largest finite value; None: no value is finite."""


class ResultRow(NamedTuple):
    """One experiment and what came out of it.

    An answer is made of up to ten thousand rows: a named tuple is made in a fourth of the time of a dataclass.
    """

    name: str  # `144.3`
    state: str  # `FINISHED`
    reason: str  # `COMPLETED`
    number: tuple[int, int]  # number and sub: the order of names
    parameters: Mapping[str, str] = MappingProxyType({})
    metrics: Mapping[str, MetricValues] = MappingProxyType({})
    seconds: float | None = None  # that it has run; None: it has not run yet
    started: str = ""  # RFC 3339; empty: it has not run yet
    ended: str = ""
    hosts: tuple[str, ...] = ()  # hosts of its jobs
    workers: int = 1  # jobs that train: without parameter servers and what only watches
    value: float | None = None  # by which it is ranked; None: it has none, or not one objective ranks
    scores: Mapping[str, float] = MappingProxyType({})  # by which several objectives rank it, by their metrics
    annotation: Annotation = NO_ANNOTATION  # what users say about it, and about its set
    generation: int | None = None  # of a trial of a population, from 1; None: it is none
    parent: str = ""  # `144.3`: the trial whose files it began with; empty: none
    beyond: bool = False  # its metrics fail a constraint of its search, or are not reported so far
    project: str = ""
    gpus: int = 0  # that its jobs asked for
    user: str = ""  # whose it is
    created: str = ""  # RFC 3339
    kind: str = "experiment"  # or what a companion is: `tensorboard`


Reader = Callable[[ResultRow], Value]
"""Reads one column of a row."""

ComparableReader = Callable[[ResultRow], Comparable]

FIXED: Mapping[str, Reader] = {
    "id": lambda row: row.name,
    "state": lambda row: name_state(row.state, row.reason),  # the word of the table, in each format and condition
    "reason": lambda row: row.reason,
    "time": lambda row: row.seconds,
    "host": lambda row: ",".join(row.hosts) or None,
    "started": lambda row: row.started or None,
    "ended": lambda row: row.ended or None,
    "workers": lambda row: float(row.workers),
    "name": lambda row: row.annotation.name or None,
    "tags": lambda row: ",".join(row.annotation.tags) or None,  # no tag has a comma
    "marks": lambda row: row.annotation.list_marks() or None,
    "note": lambda row: row.annotation.note or None,
    "generation": lambda row: None if row.generation is None else float(row.generation),
    "parent": lambda row: row.parent or None,
    "project": lambda row: row.project or None,
    "set": lambda row: row.name.rpartition(".")[0] if row.number[1] else None,
    "gpus": lambda row: float(row.gpus),
}
"""The columns that every row has."""
AFTER_ALL: Mapping[str, Reader] = {
    "user": lambda row: row.user or None,
    "created": lambda row: row.created or None,
    "type": lambda row: row.kind,
}
"""Further columns that every row has. A parameter or metric of the same name comes first: many have one."""
BUILT_IN = ("rank", *FIXED)
"""Names that always mean riseml's own column. A row has no rank: this is known once rows are chosen and sorted."""

_METRIC_PARTS: Mapping[str, Callable[[MetricValues], float | None]] = {
    "last": operator.attrgetter("last"),
    "min": operator.attrgetter("minimum"),
    "max": operator.attrgetter("maximum"),
    "step": lambda metric: None if metric.last_step is None else float(metric.last_step),
    "count": lambda metric: float(metric.count),
}
PARTS = ("best", *_METRIC_PARTS)
"""What `metric.PART` may name."""


def list_parameters(rows: Iterable[ResultRow]) -> list[str]:
    """Return the names of all parameters, in the order in which they first appear."""
    return _join_names(row.parameters for row in rows)


def list_metrics(rows: Iterable[ResultRow]) -> list[str]:
    """Return the names of all metrics, in the order in which they first appear."""
    return _join_names(row.metrics for row in rows)


def _join_names(of_rows: Iterable[Iterable[str]]) -> list[str]:
    """Return each name once; most rows have the same ones, and are looked at as a whole."""
    return list(dict.fromkeys(name for names in dict.fromkeys(map(tuple, of_rows)) for name in names))


@dataclass(frozen=True, slots=True)
class Columns:
    """Finds columns by the names that users write.

    A name is one of `BUILT_IN`, a parameter, a metric, or one of `AFTER_ALL`, in this order. `lr` and `parameters.lr`
    are the same, and so are `accuracy` and `metrics.accuracy`; only the long name finds what has the name of a column
    before it. A metric alone is the value that ranks where its goal is known, else its last one; `accuracy.last`,
    `.best`, `.min`, `.max`, `.step` (of the last value) and `.count` say which. A name in quotes is exactly that of a
    parameter or metric:
    `"val loss".max`.
    """

    parameters: frozenset[str]
    metrics: frozenset[str]
    goals: Mapping[str, Goal] = field(default_factory=dict)  # goals of the metrics whose goal is known

    def find_reader(self, name: str) -> Reader:
        """Return what reads a column.

        Raises:
            UsageError: no row has such a column, or `.best` of a metric without a goal is asked for.
        """
        if name == "rank":
            raise UsageError("the rank is known only after --where and --sort", self._suggest_for_rank())
        kind, inner, part = self.resolve(name)
        if kind == "fixed":
            return FIXED.get(inner) or AFTER_ALL[inner]
        if kind == "parameters":
            return lambda row: row.parameters.get(inner)
        if kind == "metrics":
            if not part and inner in self.goals:
                return (lambda row: row.value) if len(self.goals) == 1 else (lambda row: row.scores.get(inner))
            return self._read_part(inner, part or "last")
        raise UsageError(f"there is no column {name[:80]!r}", self._suggest(name))

    def find_comparable(self, name: str) -> ComparableReader:
        """Return what reads a column for choosing and sorting rows.

        Raises:
            UsageError: as `find_reader`.
        """
        read = self.find_reader(name)
        if self.resolve(name)[0] != "parameters":
            return read
        return lambda row: _read_comparable(read(row))

    def resolve(self, name: str) -> tuple[str, str, str]:
        """Return what a name stands for: `fixed`, `parameters`, `metrics` or empty; then the name there, and the part.

        A part is empty where the name of a metric stands alone.
        """
        if (exact := split_exact(name)) is not None:
            return self._resolve_exact(*exact)
        if name in BUILT_IN:
            return "fixed", name, ""
        section, _, inner = name.partition(".")
        if name in self.parameters:
            return "parameters", name, ""
        if section == "parameters" and inner in self.parameters:
            return "parameters", inner, ""
        metric = self._resolve_metric(name)
        metric = self._resolve_metric(inner) if not metric[0] and section == "metrics" else metric
        return ("fixed", name, "") if not metric[0] and name in AFTER_ALL else metric

    def _resolve_exact(self, section: str, name: str, part: str) -> tuple[str, str, str]:
        if section != "metrics" and not part and name in self.parameters:
            return "parameters", name, ""
        is_metric = section != "parameters" and name in self.metrics and part in ("", *PARTS)
        return ("metrics", name, part) if is_metric else ("", "", "")

    def _resolve_metric(self, name: str) -> tuple[str, str, str]:
        if name in self.metrics:
            return "metrics", name, ""
        metric, _, part = name.rpartition(".")
        return ("metrics", metric, part) if metric in self.metrics and part in PARTS else ("", "", "")

    def name_parameter(self, name: str) -> str:
        """Return the name of the column of a parameter: `lr`, or `parameters.time` where `time` is another column."""
        return f"parameters.{name}" if name in BUILT_IN else name

    def name_metric(self, metric: str, part: str = "") -> str:
        """Return the name of the column of a metric, by which `find_reader` finds it: `loss`, `loss.last`,
        `metrics.time` where `time` is another column, `"g".max` where a metric has the name `g.max`."""
        end = f".{part}" if part else ""
        quoted = quote_name(metric)
        for name in (f"{metric}{end}", f"metrics.{metric}{end}", f"{quoted}{end}"):
            if self.resolve(name) == ("metrics", metric, part):
                return name
        return f"metrics.{quoted}{end}"

    def write_metric(self, metric: str, part: str = "") -> str:
        """Return the name of a metric's column as users write it in `--sort` and `--where`."""
        name = self.name_metric(metric, part)
        if not needs_quotes(name):
            return name
        quoted = f"{quote_name(metric)}{f'.{part}' if part else ''}"
        return quoted if self.resolve(quoted)[0] == "metrics" else f"metrics.{quoted}"

    def write_parameter(self, name: str) -> str:
        """Return the name of a parameter's column as users write it in `--sort` and `--where`."""
        return quote_name(name) if needs_quotes(name) else self.name_parameter(name)

    def _read_part(self, metric: str, part: str) -> Reader:
        goal = self.goals.get(metric)
        if part == "best" and goal is None:
            sort = f"--sort -{self.write_metric(metric)}"
            raise UsageError(
                f"nothing says whether a larger or a smaller {metric} is better",
                f"write {metric}.max or {metric}.min; `search.goal` in riseml.yml, or {sort}, says it",
            )
        part = {Goal.MAXIMIZE: "max", Goal.MINIMIZE: "min"}[goal] if part == "best" and goal else part
        read = _METRIC_PARTS[part]
        return lambda row: None if (value := row.metrics.get(metric)) is None else read(value)

    def _suggest_for_rank(self) -> str:
        if "rank" in self.parameters:
            return "the parameter of this name is parameters.rank"
        return "--sort -METRIC puts the experiment with the best, largest value first, --sort METRIC the smallest"

    def _suggest(self, name: str) -> str:
        import difflib

        parameters = map(self.name_parameter, sorted(self.parameters))
        columns = [*parameters, *map(self.name_metric, sorted(self.metrics)), *FIXED]
        near = difflib.get_close_matches(name, columns, 1, 0.6)
        return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(columns[:30])}"


def _read_comparable(value: Value) -> Comparable:
    if not isinstance(value, str):
        return value
    number = read_exact(value)
    return value if number is None else number


def find_varying(rows: Sequence[ResultRow]) -> tuple[list[str], dict[str, str]]:
    """Return the parameters whose values differ, and those that all rows have alike with their value."""
    names = list_parameters(rows)
    values = {name: {row.parameters.get(name) for row in rows} for name in names}
    same = {name: text for name in names if len(values[name]) == 1 for text in values[name] if text is not None}
    return [name for name in names if name not in same], same
