"""The results of experiments: read from the store, filtered, sorted and ranked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple, TypedDict

from riseml import wire
from riseml.analysis.filters import filter_by_words, filter_rows, list_filter_notes, parse_where
from riseml.analysis.ranking import (
    Objective,
    SortKey,
    choose_objective,
    list_objectives,
    list_sort_notes,
    make_limit,
    parse_sort,
    rank_by_fronts,
    rank_rows,
    sort_by_rank,
    sort_rows,
)
from riseml.analysis.rows import Columns, ResultRow, find_varying, list_metrics, list_parameters
from riseml.base.annotations import NO_ANNOTATION, Annotation
from riseml.base.errors import NotFound, UsageError
from riseml.base.names import CanonicalId, name_for_reader, parse_id
from riseml.base.records import dataclass
from riseml.base.states import TERMINAL
from riseml.model import Caller, SearchPlan
from riseml.planning.generations import find_generation
from riseml.server.api.views.metric_views import show_summary
from riseml.server.api.views.objective_view import show_objective
from riseml.server.api.views.record_views import count_run_seconds, show_annotation
from riseml.server.services import Stores
from riseml.spec.config.conditions import list_constrained_metrics, measure_excess
from riseml.store.annotations import Subject
from riseml.store.metrics.metric_summary import MetricSummary
from riseml.store.outcomes import ExperimentOutcome, ExperimentRun, OutcomeQuery

_NO_METRICS: Mapping[str, MetricSummary] = MappingProxyType({})
_NOT_RUN = ExperimentRun()
RUN_COLUMNS = ("time", "host", "workers", "started", "ended", "gpus")
"""Columns of `ExperimentRun`: the server reads them for all experiments only when a condition or the order names
one."""
Summaries = Mapping[int, Mapping[str, MetricSummary]]
"""The metrics of experiments by their keys in the store."""

_MOST_NAMES = 10  # of metrics in a note


@dataclass(frozen=True, slots=True)
class ResultQuery:
    """The requested results, as the user wrote the request."""

    names: tuple[str, ...] = ()  # IDs of experiments and sets; empty: all of `project`
    project: str | None = None
    where: tuple[str, ...] = ()  # texts of conditions; all must hold
    sort: str = ""  # `-accuracy,time`; empty: by the objective
    archived: bool = False  # with archived experiments that have ended, and that are not named
    limit: int | None = None  # rows of the answer; None: all
    everything: bool = False  # without names and a project: all of the user's; none are no fault
    user: str = ""  # whose they are, unless the names say it; empty: the caller's
    columns: tuple[str, ...] = ()  # that must be read of all rows, beside those of the conditions and the order
    words: tuple[str, ...] = ()  # that an experiment has somewhere; with a minus before it: nowhere
    of_all: bool = False  # of all users, as far as the caller sees them
    team_project: str | None = None  # only those that belong to this team project
    companions: bool = False  # with companions, such as a TensorBoard
    newest: int | None = None  # at most so many of the newest; None: all


@dataclass(frozen=True, slots=True)
class _RowSources:
    """What was read of the experiments."""

    outcomes: Mapping[str, ExperimentOutcome]  # by their names, oldest first
    metrics: Summaries
    runs: Mapping[int, ExperimentRun]  # by their keys in the store; empty: read later, for the shown experiments only
    annotations: Mapping[str, Annotation]  # by the names of experiments; without those about which nothing is said
    reader: str  # the user of the request
    hidden: int  # archived experiments that are left out
    moment: datetime  # now


class _Placed(NamedTuple):
    """The place of one experiment among the others."""

    rank: int | None  # None: it has none
    value: float | None  # that ranks it; None: it has none
    scores: Mapping[str, float]  # that rank it by several objectives
    generation: int | None = None  # None: it is no trial of a population
    parent: str = ""  # the trial whose files it began with; empty: none


class _LineageKeys(TypedDict, total=False):
    """The keys that only a trial of a population has."""

    generation: int
    parent: str


@dataclass(frozen=True, slots=True)
class MatchedRows:
    """The requested experiments in the requested order."""

    rows: list[ResultRow]
    total: int  # experiments that were looked at
    columns: Columns
    objectives: tuple[Objective, ...]  # empty: nothing ranks
    ranks: Mapping[str, int]
    sources: _RowSources
    notes: tuple[str, ...]  # what conditions and order mean where a column mixes numbers and texts

    @property
    def objective(self) -> Objective | None:
        """What ranks alone; None: nothing ranks, or several objectives do."""
        return self.objectives[0] if len(self.objectives) == 1 else None


def match_rows(query: ResultQuery, caller: Caller, stores: Stores, moment: datetime) -> MatchedRows:
    """Return the experiments that a request wants.

    Raises:
        NotFound: there is no such experiment.
        UsageError: neither IDs nor a project are named, or a condition or a column is wrong.
    """
    conditions = [condition for text in query.where for condition in parse_where(text)]
    shows_archived = query.archived or any(
        condition.name == "archived" and not condition.negated for condition in conditions
    )
    sources = _load_rows(query, caller, stores, moment, hides=not shows_archived)
    rows = [_make_row(name, outcome, sources) for name, outcome in sources.outcomes.items()]
    metrics = frozenset(list_metrics(rows))
    parameters = frozenset(list_parameters(rows))
    keys = parse_sort(query.sort)
    plans = _load_plans(sources, stores)
    objectives = _choose_objectives(keys, _find_objectives(plans.values()), (metrics, parameters))
    columns = Columns(parameters, metrics, {objective.metric: objective.goal for objective in objectives})
    rows = _add_lineages(rows, sources, plans, stores)
    rows = _mark_rows(_add_values(rows, sources, objectives, stores), sources, plans, stores)
    matched = filter_by_words(filter_rows(rows, conditions, columns, moment), query.words)
    matched = sort_rows(matched, keys, columns)
    ranks = _rank_rows(matched, objectives)
    if objectives and not keys:
        matched = sort_by_rank(matched, ranks)
    notes = [
        *list_filter_notes(rows, conditions, columns),
        *list_sort_notes(matched, keys, columns),
        *_list_missing(rows, objectives, list_metrics(rows)),
    ]
    return MatchedRows(matched, len(rows), columns, objectives, ranks, sources, tuple(dict.fromkeys(notes)))


def read_results(query: ResultQuery, caller: Caller, stores: Stores, moment: datetime) -> wire.ResultList:
    """Return the results of experiments.

    Raises:
        NotFound: there is no such experiment.
        UsageError: neither IDs nor a project are named, or a condition or a column is wrong.
    """
    matched = match_rows(query, caller, stores, moment)
    rows = matched.rows
    objective = matched.objective
    varying, same = find_varying(rows)
    names = [row.name for row in rows[: query.limit]]
    best = next((row.name for row in rows if objective and matched.ranks.get(row.name) == 1), None)
    answered = {*names, *([] if best is None else [best])}
    placed = {
        row.name: _Placed(matched.ranks.get(row.name), row.value, row.scores, row.generation, row.parent)
        for row in rows
        if row.name in answered
    }
    views = _show_results(placed, matched.sources, stores)
    return {
        "objective": show_objective(objective) if objective else None,
        "objectives": [show_objective(ranking) for ranking in matched.objectives],
        "total": matched.total,
        "archived": matched.sources.hidden,
        "matched": len(rows),
        "parameters": varying,
        "same": same,
        "metrics": list_metrics(rows),
        "best": None if best is None else views[best],
        "experiments": [views[name] for name in names],
        "notes": list(matched.notes),
    }


def _choose_objectives(
    keys: Sequence[SortKey], several: tuple[Objective, ...], names: tuple[frozenset[str], frozenset[str]]
) -> tuple[Objective, ...]:
    """Return what the rows are ranked by: the metric of the first key, with the goal of the set if it has one; without
    such a key, the objectives of the set. `names`: of the metrics and the parameters.
    """
    metrics, parameters = names
    chosen = choose_objective(keys, metrics, several[0] if len(several) == 1 else None, parameters)
    if chosen is None:
        return several
    return (next((objective for objective in several if objective.metric == chosen.metric), chosen),)


def _list_missing(rows: Sequence[ResultRow], objectives: Sequence[Objective], names: Sequence[str]) -> Iterator[str]:
    """Yield which metric that ranks none of the rows has reported so far, and the names that they have."""
    missing = [objective.metric for objective in objectives if objective.metric not in names]
    if rows and missing:
        so_far = f"the names so far are {', '.join(sorted(names)[:_MOST_NAMES])}" if names else "nothing is reported"
        yield f"none of them has reported {' or '.join(missing)} so far; {so_far}"


def _rank_rows(rows: Sequence[ResultRow], objectives: Sequence[Objective]) -> Mapping[str, int]:
    """Return the rank of each row; nothing without an objective."""
    if len(objectives) == 1:
        return rank_rows(rows, objectives[0])
    return rank_by_fronts(rows, objectives) if objectives else {}


def _load_plans(sources: _RowSources, stores: Stores) -> Mapping[int, SearchPlan]:
    """Return the plans of the searches among the experiments, by the keys of their sets."""
    sets = {outcome.set_id for outcome in sources.outcomes.values()} - {None}
    return stores.searches.load_plans([identity for identity in sets if identity is not None])


def _find_objectives(plans: Iterable[SearchPlan]) -> tuple[Objective, ...]:
    """Return the objectives of the searches; nothing when they differ, or there is none."""
    objectives = {list_objectives(plan.search) for plan in plans}
    return objectives.pop() if len(objectives) == 1 else ()


def _mark_rows(
    rows: Sequence[ResultRow], sources: _RowSources, plans: Mapping[int, SearchPlan], stores: Stores
) -> list[ResultRow]:
    """Return the rows, and mark those of trials whose metrics fail a constraint of their search, or are missing."""
    limited = {
        identity: names
        for identity, plan in plans.items()
        if (names := list_constrained_metrics(plan.parameters, plan.search.constraints))
    }
    if not limited:
        return list(rows)
    outcomes = [sources.outcomes[row.name] for row in rows]
    lasts: dict[int, dict[str, float]] = {}
    for metric in {name for names in limited.values() for name in names}:
        summaries = {
            outcome.id: sources.metrics[outcome.id][metric]
            for outcome in outcomes
            if outcome.set_id in limited and metric in sources.metrics.get(outcome.id, _NO_METRICS)
        }
        for identity, value in stores.run_values.read_values(summaries, make_limit(metric)).items():
            lasts.setdefault(identity, {})[metric] = value
    return [
        row._replace(beyond=_is_beyond(row, plans[outcome.set_id], lasts.get(outcome.id, {})))
        if outcome.set_id in limited
        else row
        for row, outcome in zip(rows, outcomes, strict=True)
    ]


def _add_lineages(
    rows: Sequence[ResultRow], sources: _RowSources, plans: Mapping[int, SearchPlan], stores: Stores
) -> list[ResultRow]:
    """Return the rows, and those of trials of a population with their generations and parents."""
    populations = {identity: plan for identity, plan in plans.items() if plan.search.pbt is not None}
    if not populations:
        return list(rows)
    parents = stores.outcomes.read_parents(populations)
    marked: list[ResultRow] = []
    for row in rows:
        outcome = sources.outcomes[row.name]
        plan = None if outcome.set_id is None else populations.get(outcome.set_id)
        if plan is not None and outcome.sub is not None:
            number = parents.get(outcome.id)
            parent = "" if number is None else name_for_reader(sources.reader, outcome.user, outcome.number, number)
            row = row._replace(generation=find_generation(plan, outcome.sub), parent=parent)
        marked.append(row)
    return marked


def _is_beyond(row: ResultRow, plan: SearchPlan, last: Mapping[str, float]) -> bool:
    """Return True for a trial whose last values fail a constraint, or lack a metric of one."""
    constraints = plan.search.constraints
    if not last.keys() >= set(list_constrained_metrics(plan.parameters, constraints)):
        return True
    return measure_excess(constraints, tuple(row.parameters.items()), last) > 0


def _add_values(
    rows: Sequence[ResultRow], sources: _RowSources, objectives: Sequence[Objective], stores: Stores
) -> list[ResultRow]:
    """Return the rows with the values that rank them: of trials those that their searches have."""
    outcomes = [sources.outcomes[row.name] for row in rows]
    if len(objectives) == 1:
        values = _read_values(outcomes, sources, objectives[0], stores)
        return [row._replace(value=values.get(outcome.id)) for row, outcome in zip(rows, outcomes, strict=True)]
    scores: dict[int, dict[str, float]] = {}
    for objective in objectives:
        for identity, value in _read_values(outcomes, sources, objective, stores).items():
            scores.setdefault(identity, {})[objective.metric] = value
    return [row._replace(scores=scores.get(outcome.id, {})) for row, outcome in zip(rows, outcomes, strict=True)]


def _read_values(
    outcomes: Sequence[ExperimentOutcome], sources: _RowSources, objective: Objective, stores: Stores
) -> Mapping[int, float]:
    """Return the values of one objective by the keys of experiments."""
    judged = stores.searches.load_values({outcome.set_id for outcome in outcomes if outcome.set_id}, objective)
    summaries = {
        outcome.id: summary
        for outcome in outcomes
        if outcome.id not in judged
        if (summary := sources.metrics.get(outcome.id, _NO_METRICS).get(objective.metric)) is not None
    }
    return {**judged, **stores.run_values.read_values(summaries, objective)}


def _load_rows(query: ResultQuery, caller: Caller, stores: Stores, moment: datetime, *, hides: bool) -> _RowSources:
    outcomes = [
        outcome
        for user, part in _make_outcome_queries(query, caller).items()
        for outcome in stores.outcomes.read_outcomes(user, part)
    ]
    reader = caller.user
    by_name = {name_for_reader(reader, outcome.user, outcome.number, outcome.sub): outcome for outcome in outcomes}
    _check_found(query, by_name, reader)
    annotations = dict(_read_annotations(by_name, stores))
    hidden = _find_hidden(query, by_name, annotations, reader) if hides else frozenset()
    by_name = {name: outcome for name, outcome in by_name.items() if name not in hidden}
    ids = [outcome.id for outcome in by_name.values()]
    needs_runs = bool(query.words) or any(
        name in text for text in (query.sort, *query.where, *query.columns) for name in RUN_COLUMNS
    )
    runs = stores.outcomes.read_runs(ids) if needs_runs else {}
    return _RowSources(by_name, stores.metrics.read_summaries(ids), runs, annotations, reader, len(hidden), moment)


def _check_found(query: ResultQuery, outcomes: Mapping[str, ExperimentOutcome], reader: str) -> None:
    """Refuse a query for an experiment or a project that there is not.

    Raises:
        NotFound: there is none.
    """
    hint = "`riseml status -a` lists all of yours"
    sets = {_name_set(outcome, reader) for outcome in outcomes.values()} if query.names else frozenset()
    for name in query.names:
        if _name_wanted(parse_id(name), reader) not in outcomes.keys() | sets:
            raise NotFound(f"there is no experiment {name}", hint)
    if not outcomes and not query.everything:
        raise NotFound(f"project {query.project} has no experiment", hint)


def _name_set(outcome: ExperimentOutcome, reader: str) -> str:
    return name_for_reader(reader, outcome.user, outcome.number)


def _name_wanted(canonical_id: CanonicalId, reader: str) -> str:
    return name_for_reader(reader, canonical_id.user or reader, canonical_id.number, canonical_id.sub)


def _read_annotations(outcomes: Mapping[str, ExperimentOutcome], stores: Stores) -> Iterator[tuple[str, Annotation]]:
    """Yield what users say about each experiment. What they say about a set holds for its members."""
    numbers: dict[str, set[int]] = {}
    for outcome in outcomes.values():
        numbers.setdefault(outcome.user, set()).add(outcome.number)
    annotations_of = stores.annotations.load_of_users(numbers)
    for name, outcome in outcomes.items() if any(annotations_of.values()) else ():
        annotations = annotations_of[outcome.user]
        own = annotations.get(Subject(outcome.number, outcome.sub or 0), NO_ANNOTATION)
        of_set = annotations.get(Subject(outcome.number), NO_ANNOTATION)
        merged = own.add_set(of_set) if outcome.sub else own
        if merged != NO_ANNOTATION:
            yield name, merged


def _find_hidden(
    query: ResultQuery, outcomes: Mapping[str, ExperimentOutcome], annotations: Mapping[str, Annotation], reader: str
) -> frozenset[str]:
    """Return the names of archived experiments that have ended and that the request does not name, by themselves or by
    their set."""
    named = {_name_wanted(parse_id(name), reader) for name in query.names}
    return frozenset(
        name
        for name, annotation in annotations.items()
        if annotation.archived and outcomes[name].state in TERMINAL
        if named.isdisjoint((name, _name_set(outcomes[name], reader)))
    )


def _make_outcome_queries(query: ResultQuery, caller: Caller) -> Mapping[str | None, OutcomeQuery]:
    """Return what is wanted of each user; None: of all.

    Raises:
        UsageError: a name is that of a job, or nothing is named.
    """
    numbers: dict[str | None, list[tuple[int, int | None]]] = {}
    for name in query.names:
        canonical_id = parse_id(name)
        if canonical_id.job is not None:
            experiment = _name_wanted(canonical_id, caller.user)
            raise UsageError(f"{name} is a job", f"name its experiment: {experiment}")
        numbers.setdefault(canonical_id.user or caller.user, []).append((canonical_id.number, canonical_id.sub))
    everything = query.everything and query.project is None
    if not numbers and query.project is None and not everything:
        raise UsageError("neither an experiment nor a project is named", "name one")
    if not numbers:
        whose = None if query.of_all or query.team_project is not None else query.user or caller.user
        of_everything = OutcomeQuery(
            (), query.project, caller, everything, query.team_project, query.companions, query.newest
        )
        return {whose: of_everything}
    return {
        user: OutcomeQuery(tuple(of_user), None, caller, companions=query.companions)
        for user, of_user in numbers.items()
    }


def _make_row(name: str, outcome: ExperimentOutcome, sources: _RowSources) -> ResultRow:
    row = ResultRow(
        name,
        outcome.state.value,
        outcome.reason,
        (outcome.number, outcome.sub or 0),
        outcome.parameters,
        sources.metrics.get(outcome.id, _NO_METRICS),
        annotation=sources.annotations.get(name, NO_ANNOTATION),
        project=outcome.project,
        user=outcome.user,
        created=_show_moment(outcome.created_at),
        kind=outcome.companion or "experiment",
    )
    run = sources.runs.get(outcome.id)
    return row if run is None else _add_run(row, run, sources.moment)


def _add_run(row: ResultRow, run: ExperimentRun, moment: datetime) -> ResultRow:
    return row._replace(
        seconds=count_run_seconds(run, moment),
        started=_show_moment(run.started_at),
        ended=_show_moment(run.ended_at),
        hosts=run.hosts,
        workers=run.workers,
        gpus=run.gpus,
    )


def complete_rows(rows: Sequence[ResultRow], matched: MatchedRows, stores: Stores) -> list[ResultRow]:
    """Return rows with when and where they ran: `match_rows` reads it only for a condition or the order."""
    sources = matched.sources
    if sources.runs:
        return list(rows)
    runs = stores.outcomes.read_runs([sources.outcomes[row.name].id for row in rows])
    return [_add_run(row, runs.get(sources.outcomes[row.name].id, _NOT_RUN), sources.moment) for row in rows]


def _show_moment(moment: datetime | None) -> str:
    """Return a moment of the store, which is in UTC, as RFC 3339; ten times as fast as `show_time`."""
    return "" if moment is None else f"{moment.isoformat()[:19]}Z"


def _show_results(placed: Mapping[str, _Placed], sources: _RowSources, stores: Stores) -> dict[str, wire.ResultView]:
    """Return the answers for some of the experiments, by their names."""
    outcomes = {name: sources.outcomes[name] for name in placed}
    runs = sources.runs or stores.outcomes.read_runs([outcome.id for outcome in outcomes.values()])
    views: dict[str, wire.ResultView] = {}
    for name, outcome in outcomes.items():
        run = runs.get(outcome.id, _NOT_RUN)
        seconds = count_run_seconds(run, sources.moment)
        views[name] = {
            "id": name,
            "user": outcome.user,
            "project": outcome.project,
            "created_at": _show_moment(outcome.created_at),
            **show_annotation(sources.annotations.get(name, NO_ANNOTATION)),
            "rank": placed[name].rank,
            "value": placed[name].value,
            "scores": dict(placed[name].scores),
            "state": outcome.state.value,
            "reason": outcome.reason,
            "parameters": dict(outcome.parameters),
            "metrics": [show_summary(summary) for summary in sources.metrics.get(outcome.id, _NO_METRICS).values()],
            "workers": run.workers,
            "hosts": list(run.hosts),
            "gpus": run.gpus,
            "seconds": None if seconds is None else round(seconds, 3),
            "started_at": _show_moment(run.started_at) or None,
            "ended_at": _show_moment(run.ended_at) or None,
            **_show_lineage(placed[name]),
        }
    return views


def _show_lineage(placed: _Placed) -> _LineageKeys:
    lineage: _LineageKeys = {}
    if placed.generation is not None:
        lineage["generation"] = placed.generation
    if placed.parent:
        lineage["parent"] = placed.parent
    return lineage
