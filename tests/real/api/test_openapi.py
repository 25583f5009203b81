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
]
ROUTES = [
    *PLAIN,
    "GET /v1/gpus",
    "GET /v1/pool/queue",
    "GET /v1/pool/usage",
    "POST /v1/pool/hosts",
    "POST /v1/pool/hosts/{name}/remove",
    "POST /v1/pool/hosts/{name}/drain",
    "POST /v1/pool/hosts/{name}/resume",
    "GET /v1/pool/hosts/{name}/keys",
    "POST /v1/pool/hosts/{name}/keys",
    "HEAD /v1/snapshots/{digest}",
    "GET /v1/snapshots/{digest}",
    "PUT /v1/snapshots/{digest}",
    "PUT /v1/snapshots/{digest}/manifest",
    "POST /v1/snapshots/{digest}/contents",
    "POST /v1/packs/{name}",
    "POST /v1/plans",
    "POST /v1/experiments",
    "POST /v1/experiments/check",
    "GET /v1/leftovers",
    "POST /v1/leftovers/remove",
    "GET /v1/files",
    "GET /v1/files/content",
    "PUT /v1/files/content",
    "POST /v1/files/folder",
    "POST /v1/files/link",
    "POST /v1/files/remove",
    "GET /v1/outputs",
    "POST /v1/experiments/{name}/keep",
    "POST /v1/experiments/{name}/output/remove",
    "GET /v1/experiments",
    "GET /v1/names",
    "GET /v1/metrics/values",
    "POST /v1/tensorboards",
    "GET /v1/experiments/{name}",
    "POST /v1/experiments/{name}/kill",
    "GET /v1/experiments/{name}/samples",
    "GET /v1/experiments/{name}/remarks",
    "POST /v1/experiments/{name}/address",
    "GET /v1/experiments/{name}/tfconfig",
    "GET /v1/experiments/{name}/environment",
    "GET /v1/experiments/{name}/explain",
    "GET /v1/experiments/{name}/capsule",
    "GET /v1/experiments/{name}/saved",
    "POST /v1/experiments/{name}/save",
    "GET /v1/experiments/{name}/metrics",
    "GET /v1/experiments/{name}/metrics/history",
    "GET /v1/experiments/{name}/curves",
    "GET /v1/experiments/{name}/importance",
    "POST /v1/experiments/{name}/trials",
    "POST /v1/reruns/check",
    "GET /v1/comparison",
    "GET /v1/results",
    "GET /v1/experiments/{name}/logs",
    "GET /v1/experiments/{name}/events",
    "GET /v1/experiments/{name}/lines",
    "GET /v1/experiments/{name}/lines/matches",
    "POST /v1/web/sessions/{name}/end",
    "POST /v1/pool/recover",
]
WITHOUT_END = ["GET /v1/changes"]
OTHERS = ["POST /v1/web", "POST /v1/web/close"]  # they listen; tests/real/web asks them


@pytest.fixture(scope="module")
def operations(url: str) -> dict[str, Any]:
    """Every route that the server describes."""
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json", timeout=DEADLINE)  # its own is 10 seconds
    found = [result.ok() for result in schema.get_all_operations() if isinstance(result, Ok)]  # the test counts them
    return {operation.label: operation for operation in found}


def test_every_route_is_asked(operations: dict[str, Any]) -> None:
    assert sorted(operations) == sorted([*ROUTES, *WITHOUT_END, *OTHERS])


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
