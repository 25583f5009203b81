"""The routes that put experiments side by side."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from riseml import wire
from riseml.server.api.comparison import compare_experiments
from riseml.server.services import Services

Names = Annotated[
    list[str], Query(alias="of", min_length=2, max_length=20, description="canonical IDs of experiments: 4, 144.1")
]


def add_result_routes(router: APIRouter, services: Services) -> None:
    """Add /comparison."""

    @router.get("/comparison")
    def compare(names: Names) -> wire.ComparisonView:
        return compare_experiments([name[:200] for name in names], services)
