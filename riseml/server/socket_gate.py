"""The gate of the unix socket: it refuses requests that a web page sends.

Only the user of the server opens the socket. But a port that the user forwards to it (`ssh -L`, a proxy) is open to the
pages in a browser: their requests name the page as `Origin`, or come under a foreign host name that resolves to
loopback. The port of the web page has checks of its own (`riseml.server.web.web_auth`).
"""

from __future__ import annotations

import re
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from riseml.base.errors import Refused

_HOST = re.compile(r"(riseml|localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?", re.ASCII | re.IGNORECASE)


class SocketGate:
    """The application at the unix socket; requests that pass go on to `api`."""

    def __init__(self, api: ASGIApp) -> None:
        self._api = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        refusal = _check_sender(Headers(scope=scope))
        if refusal is None:
            await self._api(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await refusal(scope, receive, send)


def _check_sender(headers: Headers) -> JSONResponse | None:
    """Return the refusal of a request under a foreign name, or from a web page; None: it may pass."""
    hosts = headers.getlist("host")
    if len(hosts) != 1 or _HOST.fullmatch(hosts[0]) is None:
        hint = "a proxy before the socket sends `Host: riseml`"
        return _refuse(HTTPStatus.MISDIRECTED_REQUEST, "this server answers as riseml and localhost only", hint)
    if headers.getlist("origin"):
        hint = "`riseml web` opens the page of riseml"
        return _refuse(HTTPStatus.FORBIDDEN, "this request comes from a web page", hint)
    return None


def _refuse(status: HTTPStatus, message: str, hint: str) -> JSONResponse:
    """Return a refusal in the shape of the API."""
    body = {"kind": "Refused", "message": message, "hint": hint, "exit_code": Refused.exit_code}
    return JSONResponse({"error": body}, status)
