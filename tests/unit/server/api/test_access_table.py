"""Each route has its row, and a server with a route that has none does not start."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi import APIRouter, FastAPI, WebSocket
from fastapi.routing import APIRoute, APIWebSocketRoute

from riseml.base.roles import Role, Scope
from riseml.server.api.access_check import guard_routes
from riseml.server.api.access_reference import render_access_reference
from riseml.server.api.access_table import ACCESS, STREAM, ObjectKind
from riseml.server.api.routes.late_route import LateRoute
from riseml.server.app import Application
from riseml.server.web.proxied_app_auth import PROXIED_APP_MOUNT


def test_the_table_has_each_route_and_stream_of_the_api_and_no_other(served_application: Application) -> None:
    addresses = set[tuple[str, str]]()
    for route in served_application.api.router.routes:
        if isinstance(route, APIRoute):
            addresses |= {(method, route.path) for method in route.methods or ()}
        elif isinstance(route, APIWebSocketRoute):
            addresses.add((STREAM, route.path))
        else:
            assert getattr(route, "path", None) in ("/openapi.json", PROXIED_APP_MOUNT)
    assert addresses == ACCESS.keys()


def test_the_check_makes_no_route(served_application: Application) -> None:
    fresh = FastAPI(openapi_url=None)
    router = APIRouter(prefix="/v1", route_class=LateRoute)
    router.get("/server")(lambda: None)
    fresh.router.routes.extend(router.routes)
    guard_routes(fresh.router.routes, served_application.services.stores)
    assert not any(route.is_made for route in router.routes if isinstance(route, LateRoute))


@pytest.mark.parametrize("kind", ["route", "stream", "other method", "usual route"])
def test_a_server_with_a_route_without_a_row_does_not_start(kind: str, served_application: Application) -> None:
    router = APIRouter(prefix="/v1", route_class=APIRoute if kind == "usual route" else LateRoute)
    if kind == "stream":

        @router.websocket("/experiments/{name}/new")
        async def open_stream(websocket: WebSocket, name: str) -> None:
            """Do nothing."""

    else:
        router.add_api_route(
            "/pool" if kind == "other method" else "/new",
            lambda: None,
            methods=["DELETE"] if kind == "other method" else ["GET"],
        )
    with pytest.raises(LookupError, match=r"has no row for|neither a route nor a stream"):
        guard_routes(router.routes, served_application.services.stores)


def test_what_changes_something_needs_more_than_a_key_that_reads() -> None:
    reading = {address for address, access in ACCESS.items() if access.scope is Scope.READ}
    assert {method for method, _ in reading} == {"GET", "POST", STREAM}
    assert {path for method, path in reading if method != "GET"} == {
        "/v1/experiments/{name}/address",
        "/v1/experiments/{name}/presence",
        "/v1/reports/preview",
        "/v1/sessions/{name}/end",
    }, "the first two show a TensorBoard, the third keeps nothing, and a browser whose key only reads logs out"
    for access in ACCESS.values():
        is_own = access.kind is ObjectKind.OWN  # a user's keys, and the projects that they maintain
        assert (access.least is Role.ADMIN or is_own) >= (access.scope is Scope.ADMIN)
        assert access.least is not Role.MAINTAINER, "the resolver knows maintainers"
        assert access.kind is ObjectKind.SERVER or access.least < Role.ADMIN


def test_the_page_of_roles_is_up_to_date() -> None:
    page = Path(__file__).parents[4] / "docs" / "roles.md"
    assert page.read_text() == render_access_reference(), (
        "`python -m riseml.server.api.access_reference > docs/roles.md`"
    )
