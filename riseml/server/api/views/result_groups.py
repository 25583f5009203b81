"""Experiments that differ in their seed alone, as one row each: the answer of /results/groups."""

from __future__ import annotations

from datetime import datetime

from riseml import wire
from riseml.analysis.groups import Group, find_best_run, group_rows, rank_groups
from riseml.analysis.ranking import Objective
from riseml.analysis.rows import Columns, Reader, ResultRow, list_metrics
from riseml.base.errors import UsageError
from riseml.model import Caller
from riseml.server.api.views.objective_view import show_objective
from riseml.server.api.views.results import MatchedRows, ResultQuery, match_rows
from riseml.server.services import Stores
from riseml.spec.config.types import Goal


def read_groups(
    query: ResultQuery, column: str | None, caller: Caller, stores: Stores, moment: datetime
) -> wire.GroupList:
    """Return the groups of experiments, those with ranks first.

    Args:
        query: which experiments.
        column: whose values are grouped; None: the metric that ranks, or the only one.
        caller: the user of the request.
        stores: of the server.
        moment: now.

    Raises:
        NotFound: there is no such experiment.
        UsageError: the request is wrong, or names no metric where several were reported.
    """
    matched = match_rows(query, caller, stores, moment)
    name = column or _choose_column(matched)
    read = matched.columns.find_reader(name)
    groups = group_rows(matched.rows, lambda row: _read_number(read, row))
    objective = matched.objective if _is_ranked(name, matched.columns, matched.objective) else None
    ranks = rank_groups(groups, objective.goal) if objective else {}
    last = len(groups) + 1
    groups = sorted(groups, key=lambda group: ranks.get(group.names[0], last))
    best = find_best_run(groups, objective.goal) if objective else None
    varying, same = _find_varying(groups)
    return {
        "objective": show_objective(objective) if objective else None,
        "column": name,
        "total": matched.total,
        "matched": len(matched.rows),
        "parameters": varying,
        "same": same,
        "best_run": None if best is None else {"id": best.name, "seed": best.seed or None, "value": best.value},
        "groups": [_show_group(group, ranks.get(group.names[0])) for group in groups],
    }


def _choose_column(matched: MatchedRows) -> str:
    metrics = list_metrics(matched.rows)
    if matched.objective is not None:
        return matched.columns.name_metric(matched.objective.metric)
    if matched.objectives:
        signs = {Goal.MAXIMIZE: "-", Goal.MINIMIZE: ""}
        sorts = [
            f"--sort {signs[objective.goal]}{matched.columns.write_metric(objective.metric)}"
            for objective in matched.objectives
        ]
        raise UsageError(
            "there are several objectives, and groups are compared by one metric", f"choose it: {' or '.join(sorts)}"
        )
    if len(metrics) != 1:
        reported = ", ".join(metrics[:10]) or "none so far"
        raise UsageError("nothing says which metric is meant", f"--sort -METRIC says it; reported: {reported}")
    return matched.columns.name_metric(metrics[0])


def _is_ranked(name: str, columns: Columns, objective: Objective | None) -> bool:
    return objective is not None and columns.resolve(name) == ("metrics", objective.metric, "")


def _read_number(read: Reader, row: ResultRow) -> float | None:
    value = read(row)
    return value if isinstance(value, float) else None


def _find_varying(groups: list[Group]) -> tuple[list[str], dict[str, str]]:
    """Return the parameters whose values differ, and those that all groups have alike with their value."""
    names = dict.fromkeys(name for group in groups for name in group.parameters)
    values = {name: {group.parameters.get(name) for group in groups} for name in names}
    same = {name: text for name in names if len(values[name]) == 1 for text in values[name] if text is not None}
    return [name for name in names if name not in same], same


def _show_group(group: Group, rank: int | None) -> wire.GroupView:
    spread = group.spread
    return {
        "ids": list(group.names),
        "rank": rank,
        "parameters": dict(group.parameters),
        "n": len(group.runs),
        "mean": None if spread is None else spread.mean,
        "deviation": None if spread is None else spread.deviation,
        "low": None if spread is None else spread.low,
        "high": None if spread is None else spread.high,
        "runs": [{"id": run.name, "seed": run.seed or None, "value": run.value} for run in group.runs],
        "failed": group.failed,
        "stopped": group.stopped,
        "unfinished": group.unfinished,
        "beyond": group.beyond,
    }
