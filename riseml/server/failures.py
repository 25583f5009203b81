"""Every refusal of the HTTP door has one shape, and no answer carries a traceback."""

from __future__ import annotations

import logging

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from riseml import wire
from riseml.errors import NotFound, RisemlError, UsageError
from riseml.spec.problems import SpecError

log = logging.getLogger(__name__)


def install_handlers(app: FastAPI) -> None:
    """Turn everything that a route raises into a `wire.Failure`."""
    app.add_exception_handler(RisemlError, _answer)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(HTTPException, _answer_http)
    app.add_exception_handler(Exception, _answer_unexpected)


def show_failure(error: RisemlError) -> wire.Failure:
    """An error of the tree as its wire shape."""
    body: wire.FailureBody = {
        "kind": type(error).__name__,
        "message": error.message,
        "hint": error.hint,
        "exit_code": error.exit_code,
    }
    if isinstance(error, SpecError):
        body["problems"] = [
            {
                "file": problem.file,
                "line": problem.line,
                "column": problem.column,
                "path": problem.path,
                "problem": problem.problem,
                "hint": problem.hint,
                "severity": "error" if problem.severity.value == "error" else "warning",
            }
            for problem in error.problems
        ]
    return {"error": body}


def _respond(error: RisemlError, status: int | None = None) -> JSONResponse:
    return JSONResponse(show_failure(error), status_code=status or error.http_status)


async def _answer(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RisemlError), "registered for the error tree only"
    return _respond(error)


async def _answer_invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError), "registered for invalid requests only"
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return _respond(UsageError(f"the request is invalid at {place}: {first['msg']}", "see /openapi.json"), 422)


async def _answer_http(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException), "registered for HTTP errors only"
    kind = NotFound if error.status_code == 404 else UsageError
    return _respond(kind(f"the server has no such thing: {error.detail}", "see /openapi.json"), error.status_code)


async def _answer_unexpected(request: Request, error: Exception) -> JSONResponse:
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return _respond(RisemlError("the server failed to answer", "its log tells why: server.log in RISEML_HOME"))
