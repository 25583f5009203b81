"""Routes are made when requests ask for them, and answer as FastAPI's own do."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Annotated

import httpx
import pytest
from fastapi import APIRouter, FastAPI, Query
from fastapi.routing import APIRoute
from starlette.routing import Match

from riseml.base.settings import Settings
from riseml.server.api.routes.late_route import LateRoute
from riseml.server.app import Application, make_application
from tests.support.waiting import DEADLINE
from tests.support.without_tls import NO_AUTHORITIES
from tests.unit.server.api.conftest import serve

REQUESTS = {
    "GET /v1/one": 200,
    "GET /v1/one/": 200,  # after a redirection
    "GET /v1/one?most=3": 200,
    "GET /v1/one?most=x": 422,
    "POST /v1/one": 405,
    "GET /v1/one/2": 200,
    "GET /v1/one/x": 422,
    "GET /v1/one/2/more": 200,
    "GET /v1/one/2/less": 404,
    "GET /v1/files/a/b/c/size": 200,
    "GET /v1/files/a/b/c": 404,
    "GET /v1/two": 404,
    "GET /v1": 404,
    "GET /": 404,
}


def make_small_api(route_class: type[APIRoute]) -> FastAPI:
    """Four routes: fixed, with a number, with more after it, and with any number of parts."""
    router = APIRouter(prefix="/v1", route_class=route_class)

    @router.get("/one")
    def read_one(most: Annotated[int, Query(ge=1)] = 1) -> dict[str, int]:
        return {"one": most}

    @router.get("/one/{number}")
    def read_number(number: int) -> dict[str, int]:
        return {"number": number}

    @router.get("/one/{number}/more")
    def read_more(number: int) -> dict[str, int]:
        return {"more": number}

    @router.get("/files/{path:path}/size")
    def read_size(path: str) -> dict[str, str]:
        return {"path": path}

    api = FastAPI()
    api.router.routes.extend(router.routes)
    return api


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    home = tmp_path_factory.mktemp("late")
    settings = Settings(home, home / "output", home / "data", executor="process")
    made = make_application(settings, threading.Event())
    yield made
    made.database.close()


def list_late_routes(api: FastAPI) -> list[LateRoute]:
    return [route for route in api.routes if isinstance(route, LateRoute)]


def ask(url: str, request: str) -> tuple[int, str]:
    method, path = request.split()
    with httpx.Client(base_url=url, timeout=DEADLINE, verify=NO_AUTHORITIES, follow_redirects=True) as client:
        answer = client.request(method, path)
    return answer.status_code, answer.text


def test_late_routes_answer_as_those_of_fastapi() -> None:
    with serve(make_small_api(APIRoute)) as usual, serve(make_small_api(LateRoute)) as late:
        for request, status in REQUESTS.items():
            found = ask(late, request)
            assert (request, *found) == (request, *ask(usual, request))
            assert found[0] == status


def test_late_routes_have_the_page_of_those_of_fastapi() -> None:
    assert make_small_api(LateRoute).openapi() == make_small_api(APIRoute).openapi()


def test_a_server_that_starts_has_made_no_route(application: Application) -> None:
    routes = list_late_routes(application.api)
    assert len(routes) > 60
    assert [route for route in routes if route.is_made] == []


def test_a_request_makes_its_own_route_and_those_that_look_alike() -> None:
    api = make_small_api(LateRoute)
    with serve(api) as url:
        ask(url, "GET /v1/one/2")
    assert [route.path for route in list_late_routes(api) if route.is_made] == ["/v1/one/{number}"]


def test_every_route_of_the_server_finds_its_own_path(application: Application) -> None:
    for route in list_late_routes(application.api):
        path = "/".join("x" if "{" in part else part for part in route.path.split("/"))
        methods = sorted(route.methods or ())
        late = LateRoute(route.path, route.endpoint, methods=methods)
        match, found = late.matches({"type": "http", "method": methods[0], "path": path})
        assert (match, found["endpoint"]) == (Match.FULL, route.endpoint), path


def test_a_path_below_another_root_is_left_to_starlette() -> None:
    route = next(iter(list_late_routes(make_small_api(LateRoute))))
    scope = {"type": "http", "method": "GET", "path": "/root/v1/one", "root_path": "/root"}
    assert route.matches(scope)[0] is Match.FULL
