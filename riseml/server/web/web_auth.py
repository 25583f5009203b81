"""The checks of the web page: every request to the port passes these checks, before the API sees it.

A foreign web page can send requests to a port of loopback, and every user of the machine can connect to it. So the gate
accepts only the host names of loopback (a foreign name may resolve to 127.0.0.1), no foreign origin, and no request of
the API without cookie and proof (`access`). The files of the page hold no secrets and need neither: a link to a page
can be opened from anywhere.

The page opens one kind of stream: a command in a job. Browsers send such a handshake from any page, with all cookies,
and let no page add a header to it: so it needs the page's own origin, the cookie, and the proof as the name of a
protocol.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from riseml.base.errors import Refused
from riseml.model import Caller
from riseml.server.bounded_connection import mark_proven
from riseml.server.gate.request_caller import set_caller
from riseml.server.web.access import WebAccess
from riseml.server.web.assets import PAGE, Asset
from riseml.server.web.connections import is_foreign
from riseml.server.web.proxied_app_auth import ProxiedAppAuth, find_label

PROOF = "x-riseml-proof"
"""The header with the proof of a request."""

CHALLENGE = "x-riseml-challenge"
"""The header with the challenge of this server, in a refusal for the lack of a proof."""

_STREAM = "riseml"  # the protocol of the page's streams
_STREAM_PROOF = "riseml-proof."  # begins the protocol that has the proof
_STREAMS = re.compile(r"/api/v1/experiments/[^/]{1,200}/command", re.ASCII)
_LOOPBACK = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?", re.ASCII)
_HANDSHAKE = (b"origin", b"sec-websocket-protocol")  # headers that are meant for the gate alone
_READS = ("GET", "HEAD")
_LONGEST_BODY = 4 << 20  # bytes; the page sends small orders
_MOST_FOREIGN_BODIES = 8 << 20  # bytes of all bodies of other users of the machine that are read at a time
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
    " require-trusted-types-for 'script'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_OLD_ADDRESS = "This address was used before, or is more than ten minutes old. `riseml web` prints a new one.\n"


class WebAuth:
    """The application at the port of the web page; requests of the API that pass go on to `api`.

    Args:
        api: gets them below /v1, as those of the unix socket.
        access: knows who may pass.
        assets: the files of the page.
        app_auth: has the hosts of programs in jobs, which share the port and nothing else.
        port: where it listens.
        find_caller: returns whose session it is.
    """

    def __init__(  # one part of the web access each
        self,
        api: ASGIApp,
        access: WebAccess,
        assets: Mapping[str, Asset],
        app_auth: ProxiedAppAuth,
        port: int,
        find_caller: Callable[[str], Caller],
    ) -> None:
        self._api = api
        self._app_auth = app_auth
        self._access = access
        self._assets = assets
        self._find_caller = find_caller
        self._foreign_bodies = 0  # bytes that are read at this moment
        self._cookie = f"riseml-{port}"  # cookies of several ports of one host share their names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        label = find_label(scope)
        if label is not None:
            await self._app_auth(scope, receive, send, label)
            return
        if scope["type"] == "websocket":
            await self._pass_stream(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        body = await self._read_body(scope, receive)
        answer = _refuse_length() if body is None else self._choose_answer(scope, body)
        if answer is None:
            mark_proven(scope)
            await self._api(self._enter_api(scope), _give_again(body or b"", scope, receive), send_safely)
        else:
            await answer(scope, receive, send_safely)

    async def _pass_stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the API open a stream, or refuse the handshake."""

        async def send_accepted(message: Message) -> None:
            named = {"subprotocol": _STREAM} if message["type"] == "websocket.accept" else {}
            await send({**message, **named})

        headers = Headers(scope=scope)
        proofs = [
            subprotocol.removeprefix(_STREAM_PROOF)
            for subprotocol in scope["subprotocols"]
            if subprotocol.startswith(_STREAM_PROOF)
        ]
        origins = headers.getlist("origin")
        is_allowed = (
            bool(origins)
            and _check_origin("GET", headers) is None
            and _STREAMS.fullmatch(scope["path"]) is not None
            and len(proofs) == 1
            and self._is_proven(scope, headers, "CONNECT", proofs[0])
        )
        if not is_allowed:
            await send({"type": "websocket.close", "code": 1008})
            return
        mark_proven(scope)
        forwarded = [(name, value) for name, value in scope["headers"] if name not in _HANDSHAKE]
        await self._api({**self._enter_api(scope), "headers": forwarded, "subprotocols": []}, receive, send_accepted)

    async def _read_body(self, scope: Scope, receive: Receive) -> bytes | None:
        """Return the body of a request that changes something, of a browser with a session; None: it is too long.

        A cookie is enough for that, and cookies of 127.0.0.1 go to ports of other users, too: their bodies are bounded
        together.
        """
        if scope["method"] in _READS or self._find_session(Headers(scope=scope)) is None:
            return b""
        body = bytearray()
        foreign = is_foreign(scope)
        try:
            while True:
                message = await receive()
                piece = message.get("body", b"")
                body += piece
                self._foreign_bodies += len(piece) if foreign else 0
                if len(body) > _LONGEST_BODY or (foreign and self._foreign_bodies > _MOST_FOREIGN_BODIES):
                    return None
                if not message.get("more_body", False):
                    return bytes(body)
        finally:
            self._foreign_bodies -= len(body) if foreign else 0

    def _choose_answer(self, scope: Scope, body: bytes) -> Response | None:
        """Return the answer of the gate itself; None: the API answers."""
        headers = Headers(scope=scope)
        path = scope["path"]
        refusal = _check_origin(scope["method"], headers)
        if refusal is not None:
            return refusal
        if path == "/api" or path.startswith("/api/"):
            return self._check_session(scope, headers, body)
        if scope["method"] not in _READS:
            return PlainTextResponse("The page takes no such request.\n", HTTPStatus.METHOD_NOT_ALLOWED)
        if path == "/enter":
            return self._open_session(scope)
        is_page = not path.startswith("/static/")
        return _serve_asset(self._assets.get(PAGE if is_page else path.removeprefix("/static/")), is_page=is_page)

    def _open_session(self, scope: Scope) -> Response:
        """Exchange the token of the address for a session. The page key is behind `#`: browsers never send that."""
        tokens = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])
        session = self._access.open_session(tokens[0]) if scope["method"] == "GET" else None
        if session is None:
            return PlainTextResponse(_OLD_ADDRESS, HTTPStatus.FORBIDDEN)
        answer = RedirectResponse(f"/#session={session.page}", HTTPStatus.SEE_OTHER, {"Cache-Control": "no-store"})
        age = 30 * 86_400
        answer.set_cookie(self._cookie, session.cookie, max_age=age, path="/api", httponly=True, samesite="strict")
        return answer

    def _check_session(self, scope: Scope, headers: Headers, body: bytes) -> Response | None:
        """Return the refusal of a request of the API; None: it may pass."""
        path = scope["path"]
        if path.startswith("/api/v1/web"):
            return _refuse(HTTPStatus.FORBIDDEN, "the page cannot open or close its own listener", "use `riseml web`")
        if not (path.startswith("/api/v1/") or path == "/api/openapi.json"):
            return _refuse(HTTPStatus.NOT_FOUND, "the server has no such address", "see /api/openapi.json")
        if self._is_proven(scope, headers, scope["method"], headers.get(PROOF, ""), body):
            return None
        session = self._find_session(headers)
        answer = _refuse(HTTPStatus.UNAUTHORIZED, "this browser has no session", "`riseml web` prints an address")
        if session is not None:
            answer.headers[CHALLENGE] = self._access.challenge
        return answer

    def _enter_api(self, scope: Scope) -> Scope:
        """Return a request as the API knows it, with its caller."""
        entered = {
            **scope,
            "path": scope["path"].removeprefix("/api"),
            "raw_path": scope["raw_path"].removeprefix(b"/api"),
        }
        set_caller(entered, self._find_caller(self._find_session(Headers(scope=scope)) or ""))
        return entered

    def _find_session(self, headers: Headers) -> str | None:
        return self._access.find_session(cookie_parser(headers.get("cookie", "")).get(self._cookie, ""))

    def _is_proven(self, scope: Scope, headers: Headers, method: str, proof: str, body: bytes = b"") -> bool:
        """Return True when a request has a cookie of this server, and a proof that the page of that session made."""
        session = self._find_session(headers)
        query = scope["query_string"].decode("latin-1")
        request = f"{method} {scope['raw_path'].decode('latin-1')}" + (f"?{query}" if query else "")
        request += f"\n{hashlib.sha256(body).hexdigest()}" if body else ""
        return session is not None and self._access.is_proven(session, proof, request)


def _refuse_length() -> Response:
    return PlainTextResponse("The page sends no such long request.\n", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)


def _give_again(body: bytes, scope: Scope, receive: Receive) -> Receive:
    """Return a `receive` that begins with the body that was read before the check."""
    if scope["method"] in _READS:
        return receive
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again


def _check_origin(method: str, headers: Headers) -> Response | None:
    """Return the refusal of a request under a foreign name, or from a foreign page."""
    hosts = headers.getlist("host")
    origins = headers.getlist("origin")
    if len(hosts) != 1 or not _LOOPBACK.fullmatch(hosts[0]):
        return PlainTextResponse("This server answers at 127.0.0.1 and localhost only.\n", 421)
    wrong = origins not in ([], [f"http://{hosts[0]}"])
    if wrong or (method not in _READS and not origins):
        return PlainTextResponse("This request comes from another page.\n", HTTPStatus.FORBIDDEN)
    return None


def _serve_asset(asset: Asset | None, *, is_page: bool) -> Response:
    if asset is None:
        return PlainTextResponse("The page has no such file.\n", HTTPStatus.NOT_FOUND)
    lasts = "no-store" if is_page else "max-age=31536000, immutable"
    return Response(asset.content, headers={"Cache-Control": lasts}, media_type=asset.type)


def _refuse(status: HTTPStatus, message: str, hint: str) -> JSONResponse:
    """Return a refusal in the shape of the API."""
    body = {"kind": "Refused", "message": message, "hint": hint, "exit_code": Refused.exit_code}
    return JSONResponse({"error": body}, status)
