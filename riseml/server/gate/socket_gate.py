"""The gate of the unix socket: it says who calls, and refuses requests that a web page sends.

Only the user of the server opens the socket, and root. But a port that the user forwards to it (`ssh -L`, a proxy) is
open to the pages in a browser: their requests name the page as `Origin`, or come under a foreign host name that
resolves to loopback. The port of the web page has checks of its own (`riseml.server.web.web_auth`).
"""

from __future__ import annotations

import os
import re
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from riseml.model import Caller
from riseml.server.gate.refusals import refuse
from riseml.server.gate.request_caller import set_caller
from riseml.server.gate.socket_connections import find_peer

_HOST = re.compile(r"(riseml|localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?", re.ASCII | re.IGNORECASE)
_SUPERUSER = 0


class SocketGate:
    """The application at the unix socket; requests that pass go on to `api`.

    Args:
        api: answers.
        server_user: the user of the server, who is the caller of all that passes.
    """

    def __init__(self, api: ASGIApp, server_user: Caller) -> None:
        self._api = api
        self._server_user = server_user
        self._users = (os.getuid(), _SUPERUSER)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        refusal = _check_sender(Headers(scope=scope)) or self._check_peer(scope)
        if refusal is None:
            set_caller(scope, self._server_user)
            await self._api(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await refusal(scope, receive, send)

    def _check_peer(self, scope: Scope) -> ASGIApp | None:
        """Return the refusal of a request of another user; None: it may pass."""
        if find_peer(scope) in self._users:
            return None
        hint = "`riseml login` leads to the server of a team"
        return refuse(HTTPStatus.UNAUTHORIZED, f"this server answers {self._server_user.user} alone", hint)


def _check_sender(headers: Headers) -> ASGIApp | None:
    """Return the refusal of a request under a foreign name, or from a web page; None: it may pass."""
    hosts = headers.getlist("host")
    if len(hosts) != 1 or _HOST.fullmatch(hosts[0]) is None:
        hint = "a proxy before the socket sends `Host: riseml`"
        return refuse(HTTPStatus.MISDIRECTED_REQUEST, "this server answers as riseml and localhost only", hint)
    if headers.getlist("origin"):
        hint = "`riseml web` opens the page of riseml"
        return refuse(HTTPStatus.FORBIDDEN, "this request comes from a web page", hint)
    return None
