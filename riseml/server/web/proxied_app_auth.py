"""Who may use a proxied app: requests to `<label>.localhost` pass these checks before they reach the program of a job.

Below `/.riseml/` the host serves riseml's own files: the frame that a browser opens. The frame shows the program, and
reports to the server that its tab is open. All other addresses of this host belong to the program. None leads to the
API.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from riseml.model import Caller
from riseml.server.bounded_connection import mark_proven
from riseml.server.gate.request_caller import set_caller
from riseml.server.web.assets import Asset
from riseml.server.web.proxied_app_headers import PROGRAM_POLICY, SAFE_HEADERS
from riseml.server.web.proxied_apps import ProxiedApps

OWN_PLACE = "/.riseml/"
"""Begins the addresses at the host of a proxied app that are riseml's."""

PRESENCE = "/.riseml/presence"
"""Tells the server that a tab is open, for as long as the answer goes on."""

PROXIED_APP_MOUNT = "/apps"
"""Where the API has the programs of jobs; no request of the page reaches it."""

_HOST = re.compile(r"([0-9a-f-]{1,63})\.localhost(?::[0-9]{1,5})?", re.ASCII)
_COOKIE = "riseml-app"
_READS = ("GET", "HEAD")
_FRAME_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'"
)
_CLOSED = "This address has ended, or is another browser's. The button TensorBoard of riseml's page opens it again.\n"


def find_label(scope: Scope) -> str | None:
    """Return the label of the host of a proxied app; None: the request is for another host."""
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    match = _HOST.fullmatch(hosts[0].decode("latin-1")) if len(hosts) == 1 else None
    return None if match is None else match[1]


class ProxiedAppAuth:
    """The application at the hosts of proxied apps.

    Args:
        api: has the programs below `PROXIED_APP_MOUNT`.
        proxied_apps: knows who may pass.
        frame: the files of the frame, by their names.
        find_caller: returns whose session it is; the address of a program belongs to no session.
    """

    def __init__(
        self,
        api: ASGIApp,
        proxied_apps: ProxiedApps,
        frame: Mapping[str, Asset],
        find_caller: Callable[[str], Caller],
    ) -> None:
        self._api = api
        self._proxied_apps = proxied_apps
        self._frame = frame
        self._find_caller = find_caller

    async def __call__(self, scope: Scope, receive: Receive, send: Send, label: str) -> None:
        """Answer one request to the host of a label."""
        if scope["type"] == "websocket":  # TensorBoard opens none
            await send({"type": "websocket.close", "code": 1008})
            return
        policy = _FRAME_POLICY if scope["path"].startswith(OWN_PLACE) else PROGRAM_POLICY

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(SAFE_HEADERS)
                headers.append("Content-Security-Policy", policy)
            await send(message)

        answer = self._choose_answer(scope, label)
        if answer is not None:
            await answer(scope, receive, send_safely)
            return
        mark_proven(scope)
        path = f"{PROXIED_APP_MOUNT}/{self._proxied_apps.find_experiment(label)}{scope['path']}"
        entered = {**scope, "path": path}
        set_caller(entered, self._find_caller(""))
        await self._api(entered, receive, send_safely)

    def _choose_answer(self, scope: Scope, label: str) -> Response | None:
        """Return the answer of the gate itself; None: the program answers."""
        headers = Headers(scope=scope)
        path = scope["path"]
        if _is_foreign(scope["method"], headers):
            return PlainTextResponse("This request comes from another page.\n", HTTPStatus.FORBIDDEN)
        if self._proxied_apps.find_experiment(label) is None:
            return PlainTextResponse(_CLOSED, HTTPStatus.FORBIDDEN)
        if path == f"{OWN_PLACE}enter":
            return self._admit_browser(scope, label)
        if not self._proxied_apps.is_admitted(label, cookie_parser(headers.get("cookie", "")).get(_COOKIE, "")):
            return PlainTextResponse(_CLOSED, HTTPStatus.FORBIDDEN)
        if path == PRESENCE or not path.startswith(OWN_PLACE):
            return None
        asset = self._frame.get(path.removeprefix(OWN_PLACE) or "index.html")
        if asset is None or scope["method"] not in _READS:
            return PlainTextResponse("There is no such file.\n", HTTPStatus.NOT_FOUND)
        return Response(asset.content, headers={"Cache-Control": "no-store"}, media_type=asset.type)

    def _admit_browser(self, scope: Scope, label: str) -> Response:
        """Exchange the token of the address for a cookie of this host alone."""
        tokens = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])
        cookie = self._proxied_apps.admit(label, tokens[0]) if scope["method"] == "GET" else None
        if cookie is None:
            return PlainTextResponse(_CLOSED, HTTPStatus.FORBIDDEN)
        answer = RedirectResponse(OWN_PLACE, HTTPStatus.SEE_OTHER, {"Cache-Control": "no-store"})
        # SameSite=Lax: riseml's page is another site and links here. Cross-site requests other than top-level
        # navigation do not carry the cookie.
        answer.set_cookie(_COOKIE, cookie, path="/", httponly=True, samesite="lax")
        return answer


def _is_foreign(method: str, headers: Headers) -> bool:
    """Return True for a request from a page of another origin, except when a user opens a link."""
    origins = headers.getlist("origin")
    if origins not in ([], [f"http://{headers['host']}"]) or (method not in _READS and not origins):
        return True
    if "service-worker" in headers:  # a service worker would outlive its page
        return True
    is_link = (
        method == "GET"
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest")
        in (
            "document",
            None,
        )
    )
    return headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not is_link
