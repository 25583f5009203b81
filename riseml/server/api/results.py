"""The results of experiments: read from the store, filtered, sorted and ranked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType

from riseml import wire
from riseml.errors import NotFound, UsageError
from riseml.names import experiment_name, parse_id
from riseml.results.filters import filter_rows, parse_where
from riseml.results.ranking import Objective, choose_objective, parse_sort, rank_rows, sort_by_rank, sort_rows
from riseml.results.rows import Columns, ResultRow, find_varying, list_metrics, list_parameters
from riseml.server.api.metric_views import show_summary
from riseml.server.services import Services
from riseml.store.metrics.metric_summary import MetricSummary
from riseml.store.outcomes import ExperimentOutcome, OutcomeQuery

_NO_METRICS: Mapping[str, MetricSummary] = MappingProxyType({})
Summaries = Mapping[int, Mapping[str, MetricSummary]]
"""The metrics of experiments by their keys in the store."""


@dataclass(frozen=True, slots=True)
class ResultQuery:
    """Which results are wanted, as the user wrote it."""

    names: tuple[str, ...] = ()  # IDs of experiments and sets; empty: all of `project`
    project: str | None = None
    where: tuple[str, ...] = ()  # texts of conditions; all must hold
    sort: str = ""  # `-accuracy,time`; empty: by the objective
    limit: int | None = None  # rows of the answer; None: all


@dataclass(frozen=True, slots=True)
class _Found:
    """One experiment in each of its forms."""

    outcome: ExperimentOutcome
    row: ResultRow
    metrics: Mapping[str, MetricSummary]


def read_results(query: ResultQuery, services: Services, moment: datetime) -> wire.ResultList:
    """Return the results of experiments.

    Raises:
        NotFound: there is no such experiment.
        UsageError: neither IDs nor a project are named, or a condition or a column is wrong.
    """
    found = {one.row.name: one for one in _load(query, services, moment)}
    rows = [one.row for one in found.values()]
    metrics, parameters = frozenset(list_metrics(rows)), frozenset(list_parameters(rows))
    keys = parse_sort(query.sort)
    objective = choose_objective(keys, metrics, _find_objective(found, services))
    columns = Columns(parameters, metrics, {objective.metric: objective.goal} if objective else {})
    conditions = [condition for text in query.where for condition in parse_where(text)]
    matched = sort_rows(filter_rows(rows, conditions, columns), keys, columns)
    ranks = rank_rows(matched, objective) if objective else {}
    if objective and not keys:
        matched = sort_by_rank(matched, ranks)
    varying, same = find_varying(matched)
    best = next((row for row in matched if ranks.get(row.name) == 1), None)
    return {
        "objective": {"metric": objective.metric, "goal": objective.goal.value} if objective else None,
        "total": len(rows),
        "matched": len(matched),
        "parameters": varying,
        "same": same,
        "metrics": list_metrics(matched),
        "best": None if best is None else _show_result(found[best.name], 1),
        "experiments": [_show_result(found[row.name], ranks.get(row.name)) for row in matched[: query.limit]],
    }


def _find_objective(found: Mapping[str, _Found], services: Services) -> Objective | None:
    """Return what the sets among the experiments search for; None when they differ, or none searches."""
    sets = {one.outcome.set_id for one in found.values()} - {None}
    searches = services.searches.load_searches([identity for identity in sets if identity is not None])
    wanted = {Objective(one.plan.search.metric, one.plan.search.goal) for one in searches.values()}
    return wanted.pop() if len(wanted) == 1 else None


def _load(query: ResultQuery, services: Services, moment: datetime) -> Iterator[_Found]:
    """Yield the experiments, oldest first."""
    outcomes = services.outcomes.read_outcomes(services.info.owner.user, _make_outcome_query(query, services))
    if not outcomes:
        what = f"project {query.project} has" if not query.names else f"{', '.join(query.names)} names"
        raise NotFound(f"{what} no experiment", "`riseml status -a` lists all of yours")
    known = {number for one in outcomes for number in ((one.number, None), (one.number, one.sub))}
    for name in query.names:
        wanted = parse_id(name)
        if (wanted.number, wanted.sub) not in known:
            raise NotFound(f"there is no experiment {name}", "`riseml status -a` lists all of yours")
    summaries: Summaries = services.metrics.read_summaries([one.id for one in outcomes])
    shows_moments = any(name in text for text in (query.sort, *query.where) for name in ("started", "ended"))
    for one in outcomes:
        found = _make_found(one, summaries.get(one.id, _NO_METRICS), moment)
        yield _add_moments(found) if shows_moments else found


def _make_outcome_query(query: ResultQuery, services: Services) -> OutcomeQuery:
    numbers = []
    for name in query.names:
        wanted = parse_id(name)
        if wanted.user not in (None, services.info.owner.user):
            raise NotFound(f"there is no experiment {name}", "`riseml status -a` lists all of yours")
        if wanted.job is not None:
            raise UsageError(f"{name} is a job", f"name its experiment: {wanted.number}")
        numbers.append((wanted.number, wanted.sub))
    if not numbers and query.project is None:
        raise UsageError("neither an experiment nor a project is named", "name one")
    return OutcomeQuery(tuple(numbers), None if numbers else query.project)


def _make_found(outcome: ExperimentOutcome, metrics: Mapping[str, MetricSummary], moment: datetime) -> _Found:
    started, ended = outcome.started_at, outcome.ended_at
    row = ResultRow(
        name=experiment_name(outcome.number, outcome.sub),
        state=outcome.state.value,
        reason=outcome.reason,
        number=(outcome.number, outcome.sub or 0),
        parameters=outcome.parameters,
        metrics=metrics,
        seconds=None if started is None else max(0.0, ((ended or moment) - started).total_seconds()),
        hosts=outcome.hosts,
        workers=outcome.workers,
    )
    return _Found(outcome, row, metrics)


def _add_moments(found: _Found) -> _Found:
    """Add the moments as texts: most answers need those of a few rows only."""
    outcome = found.outcome
    row = replace(found.row, started=_show_moment(outcome.started_at), ended=_show_moment(outcome.ended_at))
    return replace(found, row=row)


def _show_moment(moment: datetime | None) -> str:
    """Return a moment of the store, which is in UTC, as RFC 3339; ten times as fast as `show_time`."""
    return "" if moment is None else f"{moment.isoformat()[:19]}Z"


def _show_result(found: _Found, rank: int | None) -> wire.ResultView:
    row, outcome = found.row, found.outcome
    return {
        "id": row.name,
        "project": outcome.project,
        "rank": rank,
        "state": outcome.state.value,
        "reason": row.reason,
        "parameters": dict(row.parameters),
        "metrics": [show_summary(one) for one in found.metrics.values()],
        "workers": row.workers,
        "hosts": list(row.hosts),
        "seconds": None if row.seconds is None else round(row.seconds, 3),
        "started_at": _show_moment(outcome.started_at) or None,
        "ended_at": _show_moment(outcome.ended_at) or None,
    }
