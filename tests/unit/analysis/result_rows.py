"""Rows of results that several tests choose from, sort and rank."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from riseml.analysis.filters import filter_rows, parse_where
from riseml.analysis.rows import Columns, ResultRow
from riseml.analysis.run_value import summarize_value
from riseml.spec.config.types import BEST_VALUE, Goal


@dataclass(frozen=True)
class Numbers:
    """A metric with these values."""

    values: tuple[float, ...]
    last_step: int | None = 7

    @property
    def count(self) -> int:
        return len(self.values)

    @property
    def last(self) -> float:
        return self.values[-1]

    @property
    def minimum(self) -> float | None:
        return min(filter(math.isfinite, self.values), default=None)

    @property
    def maximum(self) -> float | None:
        return max(filter(math.isfinite, self.values), default=None)


def make_row(sub: int, accuracy: tuple[float, ...] = (), state: str = "FINISHED", **changes: object) -> ResultRow:
    metrics = {"accuracy": Numbers(accuracy)} if accuracy else {}
    fields: dict[str, object] = {
        "parameters": {"lr": f"1e-{sub}", "opt": "adam w"},
        "metrics": metrics,
        "seconds": 60.0 * sub,
        "hosts": ("h1",),
        "value": summarize_value(metrics["accuracy"], Goal.MAXIMIZE, BEST_VALUE) if metrics else None,
    }
    # mypy cannot see that the names of a mapping are fields.
    reason = changes.pop("reason", "COMPLETED")
    return ResultRow(f"144.{sub}", state, reason, (144, sub), **{**fields, **changes})  # type: ignore[arg-type]  # a test names fields


ROWS = [
    make_row(1, (0.1, 0.9, 0.8)),
    make_row(2, (0.95, math.nan)),
    make_row(3),
    make_row(4, (0.99,), state="FAILED"),
    make_row(5, (math.inf,), state="RUNNING", parameters={"lr": "auto", "layers": "10"}),
    make_row(10, (0.9,), parameters={"lr": "0.1", "layers": "9"}),
]


COLUMNS = Columns(frozenset({"lr", "opt", "layers"}), frozenset({"accuracy", "val/loss.mean"}))


NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)


def choose(rows: Sequence[ResultRow], where: str, columns: Columns = COLUMNS) -> list[ResultRow]:
    """Return the rows that meet the conditions of a text."""
    return filter_rows(rows, parse_where(where), columns, NOW)


def names(rows: list[ResultRow]) -> list[str]:
    return [row.name.removeprefix("144.") for row in rows]
