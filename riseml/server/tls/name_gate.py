"""What stands before the gate of a team's listener: requests under a foreign name, and of foreign pages, end here.

A page in a browser can send requests to any address, under a name of its own that resolves there. It cannot choose
`Host` and `Origin`. No answer has a header that lets a foreign page read it (CORS).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from riseml.server.gate.refusals import refuse

_HOST = re.compile(r"(?P<name>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?", re.ASCII)


class NameGate:
    """The application at the listener; requests that pass go on to `api`.

    Args:
        api: answers.
        names: host names and IP addresses that the server answers to, in lower case.
    """

    def __init__(self, api: ASGIApp, names: Collection[str]) -> None:
        self._api = api
        self._names = frozenset(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        refusal = self._check_sender(Headers(scope=scope))
        if refusal is None:
            await self._api(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await refusal(scope, receive, send)

    def _check_sender(self, headers: Headers) -> ASGIApp | None:
        """Return the refusal of a request under a foreign name, or from a foreign page; None: it may pass."""
        hosts = headers.getlist("host")
        match = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
        if match is None or match["name"].lower().strip("[]") not in self._names:
            hint = "`names` in server.yml lists the names that it answers to"
            return refuse(HTTPStatus.MISDIRECTED_REQUEST, "this server does not answer under this name", hint)
        if any(origin.lower() != f"https://{hosts[0].lower()}" for origin in headers.getlist("origin")):
            hint = "open the page of riseml at the address of the server"
            return refuse(HTTPStatus.FORBIDDEN, "this request comes from a foreign web page", hint)
        return None
