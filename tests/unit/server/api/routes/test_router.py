"""All routes of the API together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from inspect import iscoroutinefunction
from pathlib import Path

import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute

from riseml.server.api.failures import FAILURES
from riseml.server.api.routes.router import make_router
from tests.unit.server.stored_experiments import open_application


@pytest.fixture
def router(tmp_path: Path) -> Iterator[APIRouter]:
    with open_application(tmp_path) as application:
        yield make_router(application.services)


def test_every_route_has_an_address_of_its_own_below_the_version(router: APIRouter) -> None:
    routes = [route for route in router.routes if isinstance(route, APIRoute)]
    assert len(routes) > 50
    assert all(route.path.startswith("/v1/") for route in routes)
    addresses = Counter((method, route.path) for route in routes for method in route.methods or ())
    assert [address for address, count in addresses.items() if count > 1] == []


def test_every_route_says_how_it_may_refuse(router: APIRouter) -> None:
    for route in router.routes:
        if isinstance(route, APIRoute):
            assert route.responses.keys() >= FAILURES.keys(), route.path


def test_no_route_needs_a_thread_before_it_is_called(router: APIRouter) -> None:
    for route in router.routes:
        if isinstance(route, APIRoute):
            parts = [part for part in route.dependant.dependencies if part.call is not None]
            assert [part.call for part in parts if not iscoroutinefunction(part.call)] == [], route.path
