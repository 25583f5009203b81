"""Refusals of the HTTP API: all have one shape, and none contains a traceback."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException

from riseml import wire
from riseml.base.errors import NotFound, RisemlError, TooLarge, UsageError
from riseml.spec.yaml.problems import SpecError

_SCHEMAS = "#/components/schemas/"


def _describe_refusal(refusal: str) -> dict[str, Any]:
    """Return how OpenAPI shows a refusal. It names the schema: FastAPI makes a validator of each `model` of each route,
    which took a third of the server's cold start.
    """
    return {"description": refusal, "content": {"application/json": {"schema": {"$ref": f"{_SCHEMAS}Failure"}}}}


FAILURES: dict[int | str, dict[str, Any]] = {
    400: _describe_refusal("the call is wrong"),
    401: _describe_refusal("the server does not know who calls"),
    403: _describe_refusal("refused: not allowed, or over a limit"),
    404: _describe_refusal("there is no such thing"),
    409: _describe_refusal("it contradicts what is there"),
    413: _describe_refusal("too much was sent"),
    422: _describe_refusal("riseml.yml, or the request, has problems"),
    502: _describe_refusal("an engine refused"),
    503: _describe_refusal("the store or the hosts do not answer"),
}
"""How a route may refuse, as OpenAPI shows it."""

_CLOSE_CONNECTION = {"Connection": "close"}  # the server does not read the rest of the request

log = logging.getLogger(__name__)


class Api(FastAPI):
    """The application, whose OpenAPI page has the schema that `FAILURES` names."""

    def openapi(self) -> dict[str, Any]:
        """Return the description of the API; it is made once."""
        page = super().openapi()
        schema = TypeAdapter(wire.Failure).json_schema(ref_template=f"{_SCHEMAS}{{model}}")
        parts = schema.pop("$defs", {})
        page["components"]["schemas"].update(parts | {"Failure": schema})
        return page


def install_handlers(app: FastAPI) -> None:
    """Install handlers that turn every exception of a route into a `wire.Failure`."""
    app.add_exception_handler(RisemlError, _answer_error)
    app.add_exception_handler(RequestValidationError, _answer_invalid_request)
    app.add_exception_handler(HTTPException, _answer_http_error)
    app.add_exception_handler(Exception, _answer_unexpected_error)


def show_failure(error: RisemlError) -> wire.Failure:
    """Return an error in its wire shape."""
    body: wire.FailureBody = {
        "kind": type(error).__name__,
        "message": error.message,
        "hint": error.hint,
        "exit_code": error.exit_code,
    }
    if isinstance(error, SpecError):
        body["problems"] = [problem.to_fields() for problem in error.problems]
    return {"error": body}


def _make_response(error: RisemlError, status: int | None = None) -> JSONResponse:
    status = status or error.http_status
    headers = _CLOSE_CONNECTION if status == 413 else None
    return JSONResponse(show_failure(error), status_code=status, headers=headers)


async def _answer_error(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RisemlError), "registered for the error tree only"
    return _make_response(error)


async def _answer_invalid_request(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError), "registered for invalid requests only"
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return _make_response(UsageError(f"the request is invalid at {place}: {first['msg']}", "see /openapi.json"), 422)


async def _answer_http_error(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException), "registered for HTTP errors only"
    match error.status_code:
        case 413:
            return _make_response(TooLarge(str(error.detail), "send less"))
        case 404:
            refusal: RisemlError = NotFound("the server has no such address", "see /openapi.json")
        case _:
            refusal = UsageError(f"the server does not take this: {error.detail}", "see /openapi.json")
    return JSONResponse(show_failure(refusal), status_code=error.status_code, headers=error.headers)


async def _answer_unexpected_error(request: Request, error: Exception) -> JSONResponse:
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return _make_response(RisemlError("the server failed to answer", "`riseml server logs` says why"))
