"""No request gets a 500, and the served OpenAPI describes every answer."""

from __future__ import annotations

from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from scripts.wire_shapes import list_routes
from tests.support.waiting import DEADLINE
from tests.unit.server.api.conftest import SUBMISSION

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
ON_POSTGRESQL = pytest.param("postgresql", marks=pytest.mark.postgres)
pytestmark = pytest.mark.parametrize("url", [ON_POSTGRESQL], indirect=True)  # faster than SQLite here
NO_HTTP = b"Invalid HTTP request received."  # said before there is a request: to a line that is too long, for instance
LONGEST_LINE = 64_000  # characters of a query from which on a line can be too long
EXAMPLES = 12  # right ones, and as many wrong ones, of each route
PLAIN = [  # there is nothing to get wrong
    "GET /v1/metrics/names",
    "GET /v1/server",
    "POST /v1/server/stop",
    "GET /v1/samples",
    "GET /v1/kept",
    "GET /v1/system",
    "GET /metrics",
    "GET /v1/pool",
    "POST /v1/pool/check",
    "POST /v1/pool/join",
    "GET /v1/web/sessions",
    "POST /v1/server/key",
    "GET /v1/whoami",
    "GET /v1/users",
    "GET /v1/projects",
    "GET /v1/secrets",
    "GET /v1/registries",
    "GET /v1/reports",
]
WITHOUT_END = ["GET /v1/changes"]
OTHERS = ["POST /v1/web", "POST /v1/web/close"]  # they listen; tests/real/web asks them
ALL = ["GET /metrics", *(f"{method} {route.path}" for route in list_routes() for method in sorted(route.methods or ()))]
ROUTES = [route for route in ALL if route not in (*WITHOUT_END, *OTHERS)]


@pytest.fixture(scope="module")
def operations(url: str) -> dict[str, Any]:
    """Every route that the server describes."""
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json", timeout=DEADLINE)  # its own is 10 seconds
    found = [result.ok() for result in schema.get_all_operations() if isinstance(result, Ok)]  # the test counts them
    return {operation.label: operation for operation in found}


def test_every_route_is_asked(operations: dict[str, Any]) -> None:
    assert sorted(operations) == sorted(ALL)
    assert {*PLAIN, *WITHOUT_END, *OTHERS} <= {*ALL}


@pytest.mark.parametrize(
    ("route", "mode"),
    [(route, mode) for route in ROUTES for mode in GenerationMode if route not in PLAIN or mode.is_positive],
)
def test_every_answer_is_described(operations: dict[str, Any], route: str, mode: GenerationMode) -> None:
    with requests.Session() as session:

        @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
        @given(case=operations[route].as_strategy(generation_mode=mode))
        def ask(case: Any) -> None:
            if route.endswith("/logs"):
                case.query = {**(case.query or {}), "follow": "false"}  # one that waits would be followed for ever
            if isinstance(case.body, dict) and len(str(case.body.get("config", ""))) % 2:
                case.body = {**case.body, "config": SUBMISSION["config"]}  # beyond the first look at riseml.yml
            try:
                response = case.call(session=session, timeout=DEADLINE)
            except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError):
                if len(str(case.query)) < LONGEST_LINE:
                    raise
                return  # the server has answered, and closed the connection before it had read the whole line
            if response.content != NO_HTTP:
                case.validate_response(response, checks=CHECKS)

        ask()
