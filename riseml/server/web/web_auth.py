"""The checks of the web page: every request to the port passes these checks, before the API sees it.

The gate accepts no foreign host name, no foreign origin, and no request of the API without cookie and proof
(`page_proofs`). Its `Entrance` says which names, and how a browser gets its session. The files of the page hold no
secrets and need neither: a link to a page can be opened from anywhere.

The page opens one kind of stream: a command in a job. Browsers send such a handshake from any page, with all cookies,
and let no page add a header to it: so it needs the page's own origin, the cookie, and the proof as the name of a
protocol.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from riseml.base.errors import Refused
from riseml.server.bounded_connection import mark_proven
from riseml.server.gate.open_requests import answer_while_valid
from riseml.server.gate.page_session import PageSession
from riseml.server.gate.request_caller import set_caller
from riseml.server.web.assets import PAGE, Asset
from riseml.server.web.connections import is_foreign
from riseml.server.web.entrance import READS, Entrance
from riseml.server.web.proxied_app_auth import ProxiedAppAuth, find_label

PROOF = "x-riseml-proof"
"""The header with the proof of a request."""

CHALLENGE = "x-riseml-challenge"
"""The header with the challenge of this server, in a refusal for the lack of a proof."""

_STREAM = "riseml"  # the protocol of the page's streams
_STREAM_PROOF = "riseml-proof."  # begins the protocol that has the proof
_STREAMS = re.compile(r"/api/v1/experiments/[^/]{1,200}/command", re.ASCII)
_HANDSHAKE = (b"origin", b"sec-websocket-protocol")  # headers that are meant for the gate alone
_LONGEST_BODY = 4 << 20  # bytes; the page sends small orders
_MOST_FOREIGN_BODIES = 8 << 20  # bytes of all bodies of other users of the machine that are read at a time
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " img-src 'self' data:; media-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
    " require-trusted-types-for 'script'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class WebAuth:
    """The application at the port of a web page; requests of the API that pass go on to `api`.

    Args:
        api: gets them below /v1, as those of the unix socket.
        entrance: knows who may pass.
        assets: the files of the page.
        app_auth: has the hosts of programs in jobs, which share the port and nothing else; None: there are none.
    """

    def __init__(
        self, api: ASGIApp, entrance: Entrance, assets: Mapping[str, Asset], app_auth: ProxiedAppAuth | None
    ) -> None:
        self._api = api
        self._app_auth = app_auth
        self._entrance = entrance
        self._assets = assets
        self._foreign_bodies = 0  # bytes that are read at this moment

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        label = None if self._app_auth is None else find_label(scope)
        if self._app_auth is not None and label is not None:
            await self._app_auth(scope, receive, send, label)
            return
        if scope["type"] == "websocket":
            await self._pass_stream(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                own_policies = headers.getlist("Content-Security-Policy")  # of media: browsers obey all of them
                headers.update(_HEADERS)
                for policy in own_policies:
                    headers.append("Content-Security-Policy", policy)
            await send(message)

        path = scope["path"]
        refusal = self._entrance.check_sender(scope)
        if refusal is None and (path == "/api" or path.startswith("/api/")):
            await self._pass_request(scope, receive, send_safely)
            return
        answer = refusal or await self._entrance.answer(scope, receive) or self._serve_file(scope)
        await answer(scope, receive, send_safely)

    async def _pass_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the API answer a request that is proven, or refuse it."""
        session = await self._entrance.find_session(scope)
        body = b"" if session is None else await self._read_body(scope, receive)
        refusal = _refuse_length() if body is None else _check_address(scope["path"])
        if refusal is not None:
            await refusal(scope, receive, send)
        elif body is None or session is None or not self._has_proof(scope, session, body):
            await self._refuse_session(session)(scope, receive, send)
        else:
            mark_proven(scope)
            await self._answer(_enter_api(scope, session), _give_again(body, scope, receive), send, session)

    async def _answer(self, entered: Scope, receive: Receive, send: Send, session: PageSession) -> None:
        """Let the API answer for as long as the session is valid."""
        answer = self._api(entered, receive, send)
        if session.is_valid is None:
            await answer
        else:
            await answer_while_valid(answer, session.is_valid)

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
        is_own = (
            bool(headers.getlist("origin"))
            and self._entrance.check_sender(scope) is None
            and _STREAMS.fullmatch(scope["path"]) is not None
            and len(proofs) == 1
        )
        session = await self._entrance.find_session(scope) if is_own else None
        if session is None or not self._is_proven(scope, session, "CONNECT", proofs[0]):
            await send({"type": "websocket.close", "code": 1008})
            return
        mark_proven(scope)
        forwarded = [(name, value) for name, value in scope["headers"] if name not in _HANDSHAKE]
        entered = {**_enter_api(scope, session), "headers": forwarded, "subprotocols": []}
        await self._answer(entered, receive, send_accepted, session)

    async def _read_body(self, scope: Scope, receive: Receive) -> bytes | None:
        """Return the body of a request that changes something, of a browser with a session; None: it is too long.

        A cookie is enough for that, and cookies of 127.0.0.1 go to ports of other users, too: their bodies are bounded
        together.
        """
        if scope["method"] in READS:
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

    def _serve_file(self, scope: Scope) -> Response:
        path = scope["path"]
        if scope["method"] not in READS:
            return PlainTextResponse("The page takes no such request.\n", HTTPStatus.METHOD_NOT_ALLOWED)
        is_page = not path.startswith("/static/")
        return _serve_asset(self._assets.get(PAGE if is_page else path.removeprefix("/static/")), is_page=is_page)

    def _has_proof(self, scope: Scope, session: PageSession, body: bytes) -> bool:
        return self._is_proven(scope, session, scope["method"], Headers(scope=scope).get(PROOF, ""), body)

    def _refuse_session(self, session: PageSession | None) -> Response:
        answer = _refuse(HTTPStatus.UNAUTHORIZED, *self._entrance.no_session)
        if session is not None:
            answer.headers[CHALLENGE] = self._entrance.proofs.challenge
        return answer

    def _is_proven(self, scope: Scope, session: PageSession, method: str, proof: str, body: bytes = b"") -> bool:
        """Return True when the page of the session has made the proof for this request."""
        query = scope["query_string"].decode("latin-1")
        request = f"{method} {scope['raw_path'].decode('latin-1')}" + (f"?{query}" if query else "")
        request += f"\n{hashlib.sha256(body).hexdigest()}" if body else ""
        return self._entrance.proofs.is_proven(session.name, proof, request)


def _check_address(path: str) -> Response | None:
    """Return the refusal of an address that is no part of the API for a page."""
    if path.startswith("/api/v1/web"):
        return _refuse(HTTPStatus.FORBIDDEN, "the page cannot open or close its own listener", "use `riseml web`")
    if not (path.startswith("/api/v1/") or path == "/api/openapi.json"):
        return _refuse(HTTPStatus.NOT_FOUND, "the server has no such address", "see /api/openapi.json")
    return None


def _refuse_length() -> Response:
    return PlainTextResponse("The page sends no such long request.\n", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)


def _give_again(body: bytes, scope: Scope, receive: Receive) -> Receive:
    """Return a `receive` that begins with the body that was read before the check."""
    if scope["method"] in READS:
        return receive
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again


def _enter_api(scope: Scope, session: PageSession) -> Scope:
    """Return a request as the API knows it, with its caller."""
    entered = {
        **scope,
        "path": scope["path"].removeprefix("/api"),
        "raw_path": scope["raw_path"].removeprefix(b"/api"),
    }
    set_caller(entered, session.caller, session.ask_again)
    return entered


def _serve_asset(asset: Asset | None, *, is_page: bool) -> Response:
    if asset is None:
        return PlainTextResponse("The page has no such file.\n", HTTPStatus.NOT_FOUND)
    lasts = "no-store" if is_page else "max-age=31536000, immutable"
    return Response(asset.content, headers={"Cache-Control": lasts}, media_type=asset.type)


def _refuse(status: HTTPStatus, message: str, hint: str) -> JSONResponse:
    """Return a refusal in the shape of the API."""
    body = {"kind": "Refused", "message": message, "hint": hint, "exit_code": Refused.exit_code}
    return JSONResponse({"error": body}, status)
