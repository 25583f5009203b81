"""The table of experiments: pages of it as JSON, and all of it as CSV."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from fastapi.responses import StreamingResponse

from riseml import wire
from riseml.base.errors import UsageError
from riseml.server.api.callers import CallerOf
from riseml.server.api.parameters import read_group
from riseml.server.api.routes.list_routes import AllUsers
from riseml.server.api.submissions.submit import check_text
from riseml.server.api.views.experiment_table import TableQuery, list_table_csv, read_table
from riseml.server.api.views.results import ResultQuery
from riseml.server.clock import now
from riseml.server.services import Services

_MOST_COLUMNS = 200
_MOST_GROUPS = 5
_MOST_OPEN = 500
_LONGEST_NAME = 300

_CSV_ANSWER: dict[int | str, dict[str, Any]] = {200: {"content": {"text/csv": {"schema": {"type": "string"}}}}}


class TableFilters:
    """Which experiments a table has, and in which order."""

    def __init__(
        self,
        names: Annotated[list[str] | None, Query(alias="of", max_length=100, description="IDs; none: all")] = None,
        user: Annotated[list[str] | None, Query(max_length=1, description="whose they are; none: the caller's")] = None,
        project: Annotated[str | None, Query(max_length=128)] = None,
        where: Annotated[list[str] | None, Query(max_length=20, description="as `riseml results --where`")] = None,
        sort: Annotated[str, Query(max_length=1000, description="as `riseml results --sort`")] = "",
        archived: Annotated[bool, Query(description="with archived ones that have ended")] = False,  # noqa: FBT002  # a query parameter is named by its caller
        word: Annotated[
            list[str] | None, Query(max_length=20, description="that it has somewhere; after a minus: nowhere")
        ] = None,
    ) -> None:
        check_text([names, user, project, where, sort, word])
        self.names = tuple(name[:200] for name in names or ())
        self.user = (user or [""])[0][:64]
        self.project = project
        self.where = tuple(text for text in where or () if text.strip())
        self.sort = sort
        self.archived = archived
        self.words = tuple(text[:_LONGEST_NAME] for text in word or ())


class TableScope:
    """Whose experiments a table has."""

    def __init__(
        self,
        all_users: AllUsers = False,  # noqa: FBT002  # a query parameter is named by its caller
        team_project: Annotated[str | None, Query(max_length=64, description="to which they belong")] = None,
        companions: Annotated[bool, Query(description="with TensorBoards and notebooks")] = False,  # noqa: FBT002  # as above
        newest: Annotated[int | None, Query(ge=1, le=10_000, description="only so many of the newest")] = None,
    ) -> None:
        check_text([team_project])
        self.all_users = all_users
        self.team_project = team_project
        self.companions = companions
        self.newest = newest


class TableShape:
    """Which columns a table has, and how its experiments are grouped."""

    def __init__(
        self,
        column: Annotated[
            list[str] | None,
            Query(max_length=_MOST_COLUMNS, description="`lr`, `loss.min`; none, with `available`: the usual ones"),
        ] = None,
        first: Annotated[
            list[str] | None, Query(max_length=_MOST_COLUMNS, description="columns that come first")
        ] = None,
        group: Annotated[list[str] | None, Query(max_length=_MOST_GROUPS, description="columns, or `set`")] = None,
        opened: Annotated[
            list[str] | None, Query(alias="open", max_length=_MOST_OPEN, description="`group` of open lines")
        ] = None,
    ) -> None:
        check_text([column, first, group, opened])
        self.columns = tuple(column or ())
        self.first = tuple(first or ())
        self.group = tuple(group or ())
        self.opened = tuple(opened or ())
        if any(len(name) > _LONGEST_NAME for name in (*self.columns, *self.group)):
            raise UsageError(f"a column has more than {_LONGEST_NAME} characters", "name one that the table has")


def add_table_routes(router: APIRouter, services: Services) -> None:
    """Add /table and /table/csv."""
    stores = services.stores

    @router.get("/table")
    def read(
        caller: CallerOf,
        filters: Annotated[TableFilters, Depends(read_group(TableFilters))],
        scope: Annotated[TableScope, Depends(read_group(TableScope))],
        shape: Annotated[TableShape, Depends(read_group(TableShape))],
        offset: Annotated[int, Query(ge=0, le=10_000_000, description="lines before the page")] = 0,
        limit: Annotated[int, Query(ge=0, le=10_000, description="lines of the page")] = 200,
        available: Annotated[bool, Query(description="list the columns that there are")] = False,  # noqa: FBT002  # a query parameter is named by its caller
    ) -> wire.TableView:
        query = replace(_make_query(filters, scope, shape), offset=offset, limit=limit, available=available)
        return read_table(query, caller, stores, now(), services.watchers.progress)

    @router.get("/table/csv", response_class=StreamingResponse, responses=_CSV_ANSWER)
    def export(
        caller: CallerOf,
        filters: Annotated[TableFilters, Depends(read_group(TableFilters))],
        scope: Annotated[TableScope, Depends(read_group(TableScope))],
        shape: Annotated[TableShape, Depends(read_group(TableShape))],
    ) -> StreamingResponse:
        lines = list_table_csv(_make_query(filters, scope, shape), caller, stores, now())
        return StreamingResponse(_end_lines(lines), media_type="text/csv")


def _make_query(filters: TableFilters, scope: TableScope, shape: TableShape) -> TableQuery:
    results = ResultQuery(
        filters.names,
        filters.project,
        filters.where,
        filters.sort,
        filters.archived,
        everything=True,
        user=filters.user,
        columns=shape.group,
        words=filters.words,
        of_all=scope.all_users,
        team_project=scope.team_project,
        companions=scope.companions,
        newest=scope.newest,
    )
    return TableQuery(results, shape.columns, shape.group, shape.opened, first=shape.first)


def _end_lines(lines: list[str]) -> Iterator[str]:
    yield from (f"{line}\n" for line in lines)
