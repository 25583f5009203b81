"""The routes that list experiments (all of them, pages, filters, sorts) and put them side by side."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query

from riseml import wire
from riseml.base.errors import UsageError
from riseml.base.names import name_for_reader, parse_id
from riseml.base.states import State
from riseml.model import Caller
from riseml.server.api.callers import CallerOf
from riseml.server.api.parameters import read_group
from riseml.server.api.submissions.submit import check_text
from riseml.server.api.views.comparison import compare_experiments
from riseml.server.api.views.curve_groups import read_curve_groups
from riseml.server.api.views.named_experiments import find_details
from riseml.server.api.views.progress_views import add_all_progress
from riseml.server.api.views.record_views import show_all
from riseml.server.api.views.result_groups import read_groups
from riseml.server.api.views.results import ResultQuery, read_results
from riseml.server.clock import now
from riseml.server.services import Services, Stores
from riseml.store.annotations import AnnotationFilter, Archived
from riseml.store.experiment_pages import LONGEST_TEXT, PageQuery, PageSort
from riseml.store.experiments import ExperimentDetail

_MOST_NUMBER = 2**31 - 1  # the highest number of an experiment that every database can store
_USUAL_PAGE = 100  # numbers
_MOST_STATES = 20
_MOST_TAGS = 20

SortName = Literal[
    "number", "-number", "project", "-project", "state", "-state", "created", "-created", "started", "-started",
    "ended", "-ended", "metric", "-metric",
]  # fmt: skip

AllUsers = Annotated[bool, Query(description="of everyone, as far as the caller sees them")]

Names = Annotated[
    list[str], Query(alias="of", min_length=2, max_length=20, description="canonical IDs of experiments: 4, 144.1")
]


class ListFilters:
    """Conditions beyond those that `riseml status` uses, and an order. With one of them, the answer is a page."""

    def __init__(
        self,
        state: Annotated[
            list[wire.StateName] | None, Query(max_length=_MOST_STATES, description="one of these")
        ] = None,
        user: Annotated[str | None, Query(max_length=64, description="whose they are")] = None,
        all_users: AllUsers = False,  # noqa: FBT002  # as above
        text: Annotated[str | None, Query(max_length=LONGEST_TEXT, description="words that it has")] = None,
        sort: Annotated[SortName | None, Query(description="by default -number; - is descending")] = None,
        offset: Annotated[int | None, Query(ge=0, le=_MOST_NUMBER, description="entries before the page")] = None,
    ) -> None:
        check_text([user, text])
        self.states = tuple(State(name) for name in state or ())
        self.user = user
        self.all_users = all_users
        self.text = text or ""
        self.sort = sort
        self.offset = offset

    @property
    def asks_for_page(self) -> bool:
        """Return True when one of the filters was given."""
        return bool(self.states or self.text or self.sort or self.offset is not None)


class TeamFilter:
    """Conditions on experiments of a team. Pages (`ListFilters.asks_for_page`) do not have them."""

    def __init__(
        self,
        team_project: Annotated[str | None, Query(max_length=64, description="to which they belong")] = None,
        older_than: Annotated[
            str | None, Query(max_length=200, description="with all_users: only those before this ID: paul.4")
        ] = None,
    ) -> None:
        check_text([team_project, older_than])
        self.team_project = team_project
        self.older_than = older_than


class MetricFilter:
    """Conditions on the last value of one metric. With a metric, the answer is a page."""

    def __init__(
        self,
        metric: Annotated[str | None, Query(max_length=200, description="only those that have reported it")] = None,
        least: Annotated[float | None, Query(description="and whose last value is at least this")] = None,
        most: Annotated[float | None, Query(description="and whose last value is at most this")] = None,
    ) -> None:
        check_text([metric])
        self.metric = metric or ""
        self.least = None if least is None or math.isnan(least) else least
        self.most = None if most is None or math.isnan(most) else most


class AnnotationQuery:
    """Conditions on what users have said about experiments."""

    def __init__(
        self,
        tag: Annotated[list[str] | None, Query(max_length=_MOST_TAGS, description="it has each of these")] = None,
        name: Annotated[str | None, Query(max_length=LONGEST_TEXT, description="a part of its name")] = None,
        starred: Annotated[bool, Query(description="only starred ones")] = False,  # noqa: FBT002  # as above
        archived: Annotated[
            Literal["hidden", "shown", "only"], Query(description="what becomes of archived ones that have ended")
        ] = "hidden",
    ) -> None:
        check_text([tag, name])
        tags = tuple(unicodedata.normalize("NFC", text[:LONGEST_TEXT]) for text in tag or ())
        self.filter = AnnotationFilter(tags, unicodedata.normalize("NFC", name or ""), starred, Archived(archived))


class ListQuery:
    """The conditions that `riseml status` uses."""

    def __init__(
        self,
        project: Annotated[str | None, Query(max_length=128)] = None,
        ended: Annotated[bool, Query(alias="all")] = False,  # noqa: FBT002  # a query parameter is named by its caller
        limit: Annotated[int | None, Query(ge=1, le=10_000, description="only the newest numbers")] = None,
        before: Annotated[int | None, Query(ge=1, le=_MOST_NUMBER, description="only numbers below this one")] = None,
        companions: bool = True,  # noqa: FBT001, FBT002  # a query parameter is named by its caller
    ) -> None:
        check_text(project)
        self.project = project
        self.ended = ended
        self.limit = limit
        self.before = before
        self.companions = companions


def add_list_routes(router: APIRouter, services: Services) -> None:
    """Add GET /experiments, and the routes of metrics for a table of all experiments."""

    @router.get("/metrics/names")
    def list_metric_names(caller: CallerOf, *, all_users: AllUsers = False) -> wire.MetricNames:
        return {"names": list(services.stores.pages.last_values.list_names(caller, of_all=all_users))}

    @router.get("/metrics/values")
    def read_metric_values(
        caller: CallerOf,
        metric: Annotated[str, Query(max_length=200, description="the name of a metric: loss")],
        *,
        all_users: AllUsers = False,
    ) -> wire.MetricLastValues:
        check_text([metric])
        last_values = services.stores.pages.last_values.read_values(metric, caller, of_all=all_users)
        return {
            "metric": metric,
            "values": {
                name_for_reader(caller.user, user, number, sub): last for user, number, sub, last in last_values
            },
        }

    @router.get("/experiments")
    def list_experiments(
        caller: CallerOf,
        query: Annotated[ListQuery, Depends(read_group(ListQuery))],
        filters: Annotated[ListFilters, Depends(read_group(ListFilters))],
        team: Annotated[TeamFilter, Depends(read_group(TeamFilter))],
        metric: Annotated[MetricFilter, Depends(read_group(MetricFilter))],
        annotations: Annotated[AnnotationQuery, Depends(read_group(AnnotationQuery))],
    ) -> wire.ExperimentList:
        if filters.asks_for_page or metric.metric:
            pages = [
                _read_page(query, filters, metric, annotations.filter, (user, caller), services.stores)
                for user in _choose_users(filters, caller, services.stores)
            ]
            return {"experiments": [view for page in pages for view in _show_list(page, caller, services)]}
        details = _read_list(query, (filters, team, annotations.filter), caller, services.stores)
        return {"experiments": _show_list(details, caller, services)}


def _choose_users(filters: ListFilters, caller: Caller, stores: Stores) -> Sequence[str]:
    """Return whose experiments a page has. Users without any that the caller sees have none in it."""
    if filters.all_users:
        return stores.names.list_users(caller)
    return [filters.user or caller.user]


def _show_list(details: Sequence[ExperimentDetail], caller: Caller, services: Services) -> list[wire.ExperimentView]:
    """Return experiments in the order in which their sets, or they, come first."""
    sets = {detail.experiment.set_id for detail in details if detail.experiment.set_id is not None}
    searches = services.stores.searches.load_searches(sets)
    last_values = _read_last_values(details, services)
    of_users: dict[str, list[ExperimentDetail]] = {}
    for detail in details:
        of_users.setdefault(detail.experiment.owner.user, []).append(detail)
    views: dict[tuple[str, int], wire.ExperimentView] = {}
    numbers = {user: dict.fromkeys(detail.experiment.number for detail in own) for user, own in of_users.items()}
    annotations = services.stores.annotations.load_of_users({user: own.keys() for user, own in numbers.items()})
    for user, own in of_users.items():
        listed = show_all(own, services.hosts.roots, searches, last_values, annotations[user], caller)
        listed = add_all_progress(listed, own, services.watchers.progress)
        views |= {(user, number): view for number, view in zip(numbers[user], listed, strict=True)}
    order = dict.fromkeys((detail.experiment.owner.user, detail.experiment.number) for detail in details)
    return [views[entry] for entry in order]


def _read_last_values(
    details: Sequence[ExperimentDetail], services: Services
) -> Mapping[int, Mapping[str, float | None]]:
    """Return the last value of each metric of some experiments, by their keys: as saved, or newer as counted."""
    ids = [detail.experiment.id for detail in details]
    stores = services.stores
    return {**stores.pages.last_values.read_values_of(ids), **stores.metrics.peek_last_values(ids)}


def _read_list(
    query: ListQuery, conditions: tuple[ListFilters, TeamFilter, AnnotationFilter], caller: Caller, stores: Stores
) -> tuple[ExperimentDetail, ...]:
    filters, team, annotation_filter = conditions
    user = filters.user or caller.user
    older_than = None
    if team.older_than is not None:
        if not filters.all_users:
            raise UsageError("`older_than` is for a list of all users", "add all_users=true, or give `before`")
        older = find_details(parse_id(team.older_than), caller, stores)[0].experiment
        older_than = (older.owner.user, older.number)
    return stores.experiments.list_experiments(
        None if filters.all_users else user,
        ended=query.ended,
        project=query.project,
        limit=query.limit,
        before=query.before,
        companions=query.companions,
        annotation_filter=annotation_filter,
        caller=None if not filters.all_users and user == caller.user and caller.project is None else caller,
        team_project=team.team_project,
        older_than=older_than,
    )


def _read_page(
    query: ListQuery,
    filters: ListFilters,
    metric: MetricFilter,
    annotation_filter: AnnotationFilter,
    whose: tuple[str, Caller],
    stores: Stores,
) -> tuple[ExperimentDetail, ...]:
    if query.before is not None and filters.sort not in (None, "-number"):
        raise UsageError("`before` names the next page of the newest numbers alone", "give an offset with this sort")
    sort = filters.sort or "-number"
    if sort in ("metric", "-metric") and not metric.metric:
        raise UsageError("no metric is named to sort by", "add metric=NAME: GET /v1/metrics/names lists the names")
    user, caller = whose
    page = PageQuery(
        sort=PageSort(sort.removeprefix("-")),
        descending=sort.startswith("-"),
        limit=query.limit or _USUAL_PAGE,
        offset=filters.offset or 0,
        ended=query.ended,
        companions=query.companions,
        project=query.project,
        states=filters.states,
        text=filters.text,
        annotation_filter=annotation_filter,
        before=query.before,
        metric=metric.metric,
        least=metric.least,
        most=metric.most,
        caller=None if user == caller.user and caller.project is None else caller,
    )
    return stores.pages.read_page(user, page)


def add_result_routes(router: APIRouter, stores: Stores) -> None:
    """Add /comparison, /results, /results/groups and /results/curves, which put experiments side by side."""

    @router.get("/comparison")
    def compare(names: Names, caller: CallerOf) -> wire.ComparisonView:
        return compare_experiments([name[:200] for name in names], caller, stores, now())

    @router.get("/results")
    def read(
        caller: CallerOf,
        names: Annotated[list[str] | None, Query(alias="of", max_length=100)] = None,
        project: Annotated[str | None, Query(max_length=128)] = None,
        where: Annotated[list[str] | None, Query(max_length=20)] = None,
        sort: Annotated[str, Query(max_length=1000)] = "",
        limit: Annotated[int | None, Query(ge=1, le=1_000_000)] = None,
        archived: Annotated[bool, Query(description="with archived ones that have ended")] = False,  # noqa: FBT002  # as above
    ) -> wire.ResultList:
        check_text([project, sort, where])
        named = tuple(name[:200] for name in names or ())
        query = ResultQuery(named, project, tuple(where or ()), sort, archived, limit)
        return read_results(query, caller, stores, now())

    @router.get("/results/groups")
    def read_by_point(
        caller: CallerOf,
        names: Annotated[list[str] | None, Query(alias="of", max_length=100)] = None,
        project: Annotated[str | None, Query(max_length=128)] = None,
        where: Annotated[list[str] | None, Query(max_length=20)] = None,
        sort: Annotated[str, Query(max_length=1000)] = "",
        column: Annotated[str | None, Query(max_length=200, description="whose values: accuracy, loss.last")] = None,
        archived: Annotated[bool, Query(description="with archived ones that have ended")] = False,  # noqa: FBT002  # as above
    ) -> wire.GroupList:
        check_text([project, sort, where, column])
        query = ResultQuery(tuple(name[:200] for name in names or ()), project, tuple(where or ()), sort, archived)
        return read_groups(query, column, caller, stores, now())

    @router.get("/results/curves")
    def read_curves_by(
        caller: CallerOf,
        metric: Annotated[str, Query(max_length=200, description="the name of a metric: loss")],
        by: Annotated[str, Query(max_length=200, description="a parameter, `tag`, or `point`: all but the seed")],
        names: Annotated[list[str] | None, Query(alias="of", max_length=100)] = None,
        project: Annotated[str | None, Query(max_length=128)] = None,
        where: Annotated[list[str] | None, Query(max_length=20)] = None,
        archived: Annotated[bool, Query(description="with archived ones that have ended")] = False,  # noqa: FBT002  # as above
    ) -> wire.GroupCurveList:
        check_text([project, where, metric, by])
        query = ResultQuery(tuple(name[:200] for name in names or ()), project, tuple(where or ()), "", archived)
        return read_curve_groups(query, metric, by, caller, stores, now())
