"""The routes that put experiments side by side."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from riseml import wire
from riseml.server.api.submissions.submit import check_text
from riseml.server.api.views.comparison import compare_experiments
from riseml.server.api.views.results import ResultQuery, read_results
from riseml.server.clock import now
from riseml.server.services import Services

Names = Annotated[
    list[str], Query(alias="of", min_length=2, max_length=20, description="canonical IDs of experiments: 4, 144.1")
]


def add_result_routes(router: APIRouter, services: Services) -> None:
    """Add /comparison and /results."""

    @router.get("/comparison")
    def compare(names: Names) -> wire.ComparisonView:
        return compare_experiments([name[:200] for name in names], services, now())

    @router.get("/results")
    def read(
        names: Annotated[list[str] | None, Query(alias="of", max_length=100)] = None,
        project: Annotated[str | None, Query(max_length=128)] = None,
        where: Annotated[list[str] | None, Query(max_length=20)] = None,
        sort: Annotated[str, Query(max_length=1000)] = "",
        limit: Annotated[int | None, Query(ge=1, le=1_000_000)] = None,
    ) -> wire.ResultList:
        check_text([project, sort, where])
        query = ResultQuery(tuple(name[:200] for name in names or ()), project, tuple(where or ()), sort, limit)
        return read_results(query, services, now())
