"""What a gate answers to a request that does not pass: a refusal in the shape of the API."""

from __future__ import annotations

from http import HTTPStatus

from starlette.responses import JSONResponse

from riseml.base.errors import Refused, RisemlError, Unauthenticated


def refuse(status: HTTPStatus, message: str, hint: str) -> JSONResponse:
    """Return a refusal in the shape of the API."""
    unknown = status is HTTPStatus.UNAUTHORIZED
    kind = Unauthenticated if unknown else Refused
    body = {"kind": kind.__name__, "message": message, "hint": hint, "exit_code": kind.exit_code}
    headers = {"WWW-Authenticate": "Bearer"} if unknown else None
    return JSONResponse({"error": body}, status, headers)


def refuse_for(error: RisemlError) -> JSONResponse:
    """Return the refusal of a request for an error."""
    body = {
        "kind": type(error).__name__,
        "message": error.message,
        "hint": error.hint,
        "exit_code": error.exit_code,
    }
    return JSONResponse({"error": body}, error.http_status)
