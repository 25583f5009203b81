"""What every bench uses: interleaved rounds, medians with their spread, bars with their verdicts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

UNITS = {"ms": 1000.0, "s": 1.0}


@dataclass(frozen=True, slots=True)
class BenchContext:
    """The arguments of a bench."""

    engine: str  # address
    folder: Path  # only for this bench; removed afterwards
    bench_python: Path | None  # of the peers' environment; None: it could not be created
    quick: bool = False  # a smoke test

    def rounds(self, full: int, quick: int = 1) -> int:
        """Return `full`, or `quick` in a smoke test."""
        return quick if self.quick else full


@dataclass(frozen=True, slots=True)
class Measure:
    """The values of one contender."""

    name: str  # of the contender
    values: tuple[float, ...]  # times in seconds, everything else in `unit`
    unit: str = "s"  # of the shown value; times may have "ms"
    note: str = ""

    @property
    def median(self) -> float:
        return percentile(self.values, 0.5)

    def shown(self, share: float) -> str:
        """Return a percentile with its unit."""
        return format_value(percentile(self.values, share), self.unit)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "unit": "s" if self.unit in UNITS else self.unit,
            "shown_in": self.unit,
            "note": self.note,
            "values": [round(value, 6) for value in self.values],
            "median": round(self.median, 6) if self.values else None,
        }


@dataclass(frozen=True, slots=True)
class Bar:
    """A requirement on riseml, with the measured figure."""

    requirement: str
    figure: str  # as measured
    passed: bool | None  # None: it could not be measured
    cause: str = ""  # why the figure falls short, when it does

    @property
    def verdict(self) -> str:
        return {True: "pass", False: "falls short", None: "not measured"}[self.passed]

    def to_json(self) -> dict[str, Any]:
        cause = "" if self.passed else self.cause
        return {"what": self.requirement, "figure": self.figure, "verdict": self.verdict, "cause": cause}


@dataclass(frozen=True, slots=True)
class TimeBar(Bar):
    """A bar in seconds. Such bars were set on one machine; benchmarks/pace.py judges them on a slower one."""

    value: float = float("nan")  # seconds
    limit: float = float("nan")  # seconds
    unit: str = "s"  # of the shown values: "s" or "ms"


@dataclass(slots=True)
class Report:
    """The result of a bench. Ratios are to the first measure of a group."""

    groups: dict[str, list[Measure]] = field(default_factory=dict)
    bars: list[Bar] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, group: str, *measures: Measure) -> None:
        self.groups.setdefault(group, []).extend(measures)

    def to_json(self) -> dict[str, Any]:
        return {
            "groups": {name: [measure.to_json() for measure in group] for name, group in self.groups.items()},
            "bars": [bar.to_json() for bar in self.bars],
            "notes": self.notes,
        }


RunOnce = Callable[[int], Mapping[str, float]]
"""One run of a contender: takes the number of the round, and returns values by measure."""


def interleave(rounds: int, contenders: Mapping[str, RunOnce], skip: int = 0) -> dict[str, dict[str, list[float]]]:
    """Run the contenders in turns (A B C, B C A, C A B, ...), so that neither time nor order favours one.

    Args:
        rounds: how often each contender runs.
        contenders: by name.
        skip: rounds before these, which fill the caches; their numbers are negative, their values are discarded.

    Returns:
        The values by contender and by measure.
    """
    names = list(contenders)
    results: dict[str, dict[str, list[float]]] = {name: {} for name in names}
    for turn in range(-skip, rounds):
        for position in range(len(names)):
            name = names[(turn + position) % len(names)]
            print_progress(f"  round {turn + 1}/{rounds}: {name}" if turn >= 0 else f"  warming up: {name}")
            for measure, value in contenders[name](turn).items():
                if turn >= 0:
                    results[name].setdefault(measure, []).append(value)
    return results


def select_measures(
    results: Mapping[str, Mapping[str, Sequence[float]]], measure: str, unit: str = "s"
) -> list[Measure]:
    """Return one measure of every contender that has it."""
    return [Measure(name, tuple(kinds[measure]), unit) for name, kinds in results.items() if measure in kinds]


def percentile(values: Sequence[float], share: float) -> float:
    """Return a percentile, interpolated between the two nearest values; NaN without values."""
    if not values:
        return float("nan")
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def median(values: Sequence[float]) -> float:
    return percentile(values, 0.5)


def bar_at_most(requirement: str, figure: float, limit: float, unit: str = "s", cause: str = "") -> Bar:
    """Return a bar for a figure that must not be above `limit`."""
    comparison = f"{format_value(figure, unit)} of {format_value(limit, unit)}"
    return Bar(requirement, comparison, None if figure != figure or limit != limit else figure <= limit, cause)


def bar_of_time(requirement: str, value: float, limit: float, unit: str = "s", cause: str = "") -> TimeBar:
    """Return a bar for a time with a constant limit. For a limit measured in the same run, use `bar_at_most`."""
    bar = bar_at_most(requirement, value, limit, unit, cause)
    return TimeBar(bar.requirement, bar.figure, bar.passed, bar.cause, value, limit, unit)


def bar_at_least(requirement: str, figure: float, limit: float, unit: str = "%", cause: str = "") -> Bar:
    """Return a bar for a figure that must not be below `limit`."""
    comparison = f"{format_value(figure, unit)} of {format_value(limit, unit)}"
    return Bar(requirement, comparison, None if figure != figure else figure >= limit, cause)


def bar_ahead_of_peers(
    requirement: str, own: float, peers: Mapping[str, float], unit: str = "s", cause: str = ""
) -> Bar:
    """Return a bar that passes when riseml is faster than every measured peer."""
    measured = {name: value for name, value in peers.items() if value == value}
    comparison = ", ".join(
        [
            f"riseml {format_value(own, unit)}",
            *(f"{name} {format_value(value, unit)}" for name, value in measured.items()),
        ]
    )
    return Bar(requirement, comparison, all(own < value for value in measured.values()) if measured else None, cause)


def format_value(value: float, unit: str) -> str:
    """Return a number with its unit, rounded for readers. With `ms`, the number is in seconds and is converted."""
    if value != value:
        return "-"
    scaled = value * UNITS.get(unit, 1.0)
    digits = 0 if abs(scaled) >= 100 or unit == "count" else 1 if abs(scaled) >= 10 else 2
    return f"{scaled:,.{digits}f}" if unit in ("count", "") else f"{scaled:,.{digits}f} {unit}"


def align_columns(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the rows as lines with left-aligned columns, two spaces between them."""
    cells = [list(row) for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))] if cells else []
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def format_report(name: str, report: Report) -> list[str]:
    """Return a report as lines: every measure, its spread and its ratio to the first measure of its group."""
    lines = [f"== {name}"]
    for group, measures in report.groups.items():
        rows: list[Sequence[str]] = [(group, "median", "middle half", "99th", "n", "ratio", "")]
        first = measures[0].median if measures else float("nan")
        for measure in measures:
            ratio = measure.median / first if first and measure.values else float("nan")
            spread = f"{measure.shown(0.25)} - {measure.shown(0.75)}" if len(measure.values) > 1 else ""
            high = measure.shown(0.99) if len(measure.values) >= 20 else ""
            ratio_text = "-" if ratio != ratio else f"{ratio:.2f}"
            rows.append(
                (
                    f"  {measure.name}",
                    measure.shown(0.5),
                    spread,
                    high,
                    str(len(measure.values)),
                    ratio_text,
                    measure.note,
                )
            )
        lines += [*align_columns(rows), ""]
    lines += [f"note: {note}" for note in report.notes]
    return lines


def format_bars(reports: Mapping[str, Report]) -> list[str]:
    """Return every bar as a line, with its figure and its verdict."""
    rows: list[Sequence[str]] = [("bench", "bar", "figure", "verdict")]
    causes: list[str] = []
    for name, report in reports.items():
        for bar in report.bars:
            rows.append((name, bar.requirement, bar.figure, bar.verdict))
            if not bar.passed and bar.cause:
                causes.append(f"{name}: {bar.requirement}: {bar.cause}")
    return [*align_columns(rows), *(["", "Why:"] if causes else []), *(f"  {cause}" for cause in causes)]


def print_progress(text: str) -> None:
    """Print progress on standard error."""
    print(text, file=sys.stderr, flush=True)
