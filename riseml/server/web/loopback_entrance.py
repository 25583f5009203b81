"""Who may use the page at 127.0.0.1: a browser that has opened an address of `riseml web`.

A foreign web page can send requests to a port of loopback, and every user of the machine can connect to it. So only the
host names of loopback are answered: a foreign name may resolve to 127.0.0.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import Receive, Scope

from riseml.model import Caller
from riseml.server.gate.page_session import PageSession
from riseml.server.web.access import WebAccess
from riseml.server.web.entrance import check_origin
from riseml.server.web.page_proofs import PageProofs

_LOOPBACK = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?", re.ASCII)
_OLD_ADDRESS = "This address was used before, or is more than ten minutes old. `riseml web` prints a new one.\n"
_SESSION_AGE = 30 * 86_400  # seconds


class LoopbackEntrance:
    """The entrance of a server of one user.

    Args:
        access: knows who may pass.
        port: where the page is.
        find_caller: returns whose session it is.
    """

    no_session = ("this browser has no session", "`riseml web` prints an address")

    def __init__(self, access: WebAccess, port: int, find_caller: Callable[[str], Caller]) -> None:
        self._access = access
        self._find_caller = find_caller
        self._cookie = f"riseml-{port}"  # cookies of several ports of one host share their names

    @property
    def proofs(self) -> PageProofs:
        """What checks the proofs of its pages."""
        return self._access.proofs

    def check_sender(self, scope: Scope) -> Response | None:
        """Return the refusal of a request under another name than those of loopback, or from a foreign page."""
        hosts = Headers(scope=scope).getlist("host")
        if len(hosts) != 1 or not _LOOPBACK.fullmatch(hosts[0]):
            return PlainTextResponse("This server answers at 127.0.0.1 and localhost only.\n", 421)
        return check_origin(scope, "http")

    async def answer(self, scope: Scope, receive: Receive) -> Response | None:
        """Exchange the token of an address for a session. The page key is behind `#`: browsers never send that."""
        if scope["path"] != "/enter" or scope["method"] not in ("GET", "HEAD"):
            return None
        tokens = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])
        session = self._access.open_session(tokens[0]) if scope["method"] == "GET" else None
        if session is None:
            return PlainTextResponse(_OLD_ADDRESS, HTTPStatus.FORBIDDEN)
        answer = RedirectResponse(f"/#session={session.page}", HTTPStatus.SEE_OTHER, {"Cache-Control": "no-store"})
        answer.set_cookie(
            self._cookie, session.cookie, max_age=_SESSION_AGE, path="/api", httponly=True, samesite="strict"
        )
        return answer

    async def find_session(self, scope: Scope) -> PageSession | None:
        """Return the session of a cookie that this server has given."""
        name = self._access.find_session(cookie_parser(Headers(scope=scope).get("cookie", "")).get(self._cookie, ""))
        return None if name is None else PageSession(name, self._find_caller(name))
