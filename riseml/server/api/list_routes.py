"""The route that lists experiments: all of them, pages, filters and sorts."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query

from riseml import wire
from riseml.errors import UsageError
from riseml.server.api.submit import check_text
from riseml.server.api.views import show_all
from riseml.server.services import Services
from riseml.states import State
from riseml.store.experiment_pages import LONGEST_TEXT, PageQuery, PageSort
from riseml.store.experiments import ExperimentDetail

_MOST_NUMBER = 2**31 - 1  # of an experiment: what every database can count
_USUAL_PAGE = 100  # numbers
_MOST_STATES = 20

SortName = Literal[
    "number", "-number", "project", "-project", "state", "-state", "created", "-created", "started", "-started",
    "ended", "-ended",
]  # fmt: skip


class ListFilters:
    """Conditions beyond those that `riseml status` uses, and an order. With one of them, the answer is a page."""

    def __init__(
        self,
        state: Annotated[
            list[wire.StateName] | None, Query(max_length=_MOST_STATES, description="one of these")
        ] = None,
        user: Annotated[str | None, Query(max_length=64, description="whose they are")] = None,
        text: Annotated[str | None, Query(max_length=LONGEST_TEXT, description="words that it has")] = None,
        sort: Annotated[SortName | None, Query(description="by default -number; - is descending")] = None,
        offset: Annotated[int | None, Query(ge=0, le=_MOST_NUMBER, description="entries before the page")] = None,
    ) -> None:
        check_text([user, text])
        self.states = tuple(State(one) for one in state or ())
        self.user = user
        self.text = text or ""
        self.sort = sort
        self.offset = offset

    @property
    def asks_for_page(self) -> bool:
        """True when one of them was given."""
        return bool(self.states or self.text or self.sort or self.offset is not None)


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
    """Add GET /experiments."""

    @router.get("/experiments")
    def list_experiments(
        query: Annotated[ListQuery, Depends()], filters: Annotated[ListFilters, Depends()]
    ) -> wire.ExperimentList:
        details = _read_page(query, filters, services) if filters.asks_for_page else _read_list(query, services)
        if filters.user not in (None, services.info.owner.user):
            details = ()
        sets = {one.experiment.set_id for one in details if one.experiment.set_id is not None}
        return {"experiments": show_all(details, services.hosts.roots, services.searches.load_searches(sets))}


def _read_list(query: ListQuery, services: Services) -> tuple[ExperimentDetail, ...]:
    return services.experiments.list_experiments(
        services.info.owner.user,
        ended=query.ended,
        project=query.project,
        limit=query.limit,
        before=query.before,
        companions=query.companions,
    )


def _read_page(query: ListQuery, filters: ListFilters, services: Services) -> tuple[ExperimentDetail, ...]:
    if query.before is not None and filters.sort not in (None, "-number"):
        raise UsageError("`before` names the next page of the newest numbers alone", "give an offset with this sort")
    sort = filters.sort or "-number"
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
        before=query.before,
    )
    return services.pages.read_page(services.info.owner.user, page)
