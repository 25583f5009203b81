"""The answer of a server about results, as rows and columns that the rest of `analysis` reads. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from riseml.analysis.rows import Columns, ResultRow
from riseml.base.annotations import Annotation
from riseml.base.records import dataclass
from riseml.spec.config.types import Goal

if TYPE_CHECKING:
    from riseml import wire


@dataclass(frozen=True, slots=True)
class MetricNumbers:
    """The numbers of one metric, as `riseml.analysis` reads them."""

    count: int
    last: float
    last_step: int | None
    minimum: float | None
    maximum: float | None


def make_row(result: wire.ResultView) -> ResultRow:
    """Return an answer of the server as a row whose columns `riseml.analysis` finds."""
    number, sub = (*(part for part in result["id"].split(".") if part.isdecimal()), "0", "0")[:2]
    metrics = {
        metric["name"]: MetricNumbers(
            metric["count"], _read_float(metric["last"]), metric["last_step"], metric["min"], metric["max"]
        )
        for metric in result["metrics"]
    }
    return ResultRow(
        name=result["id"],
        state=result["state"],
        reason=result["reason"],
        number=(_read_int(number), _read_int(sub)),
        parameters=result["parameters"],
        metrics=metrics,
        seconds=result["seconds"],
        started=result["started_at"] or "",
        ended=result["ended_at"] or "",
        hosts=tuple(result["hosts"]),
        workers=result["workers"],
        value=result["value"],
        scores=result["scores"],
        project=result["project"],
        gpus=result.get("gpus", 0),
        user=result.get("user", ""),
        created=result.get("created_at", ""),
        annotation=Annotation(
            result.get("name", ""),  # a server of an earlier version says nothing of it
            tuple(result.get("tags", ())),
            result.get("note", ""),
            result.get("starred", False),
            result.get("archived", False),
        ),
        generation=result.get("generation"),
        parent=result.get("parent", ""),
    )


def _read_float(value: float | str) -> float:
    return float(value) if not isinstance(value, str) or value in ("nan", "inf", "-inf") else math.nan


def _read_int(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def make_columns(results: wire.ResultList) -> Columns:
    """Return the finder of columns for these results."""
    known_goals = {goal.value: goal for goal in Goal}  # a newer server may have others
    goals = {
        objective["metric"]: known_goals[objective["goal"]]
        for objective in list_objectives(results)
        if objective["goal"] in known_goals
    }
    return Columns(frozenset((*results["parameters"], *results["same"])), frozenset(results["metrics"]), goals)


def list_objectives(results: wire.ResultList) -> list[wire.ObjectiveView]:
    """Return what the rows are ranked by; a server of an earlier version names one objective only."""
    objective = results["objective"]
    return results.get("objectives") or ([] if objective is None else [objective])


def list_all_names(results: wire.ResultList, columns: Columns) -> list[str]:
    """Return the name of every column: each parameter, and of each metric the last, smallest and largest value."""
    parameters = map(columns.name_parameter, (*results["same"], *results["parameters"]))
    metrics = [
        columns.name_metric(name, part) for name in results["metrics"] for part in ("last", "min", "max", "step")
    ]
    lineage = ["generation", "parent"] if has_generations(results) else []
    ends = ["state", "reason", "time", "workers", "host", "started", "ended", "name", "tags", "marks", "note"]
    return ["rank", "id", *lineage, *parameters, *metrics, *ends]


def has_generations(results: wire.ResultList) -> bool:
    """Return True when trials of a population are among the results."""
    return any("generation" in result for result in results["experiments"])
