"""The largest body that a request may have; checked while it arrives."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BODY = 8 * 2**20
"""Bytes of a request's body. The files of a project have other limits: see `SnapshotStore` and `read_manifest_body`."""

_FILES = ("/v1/snapshots/", "/v1/files/content")


class BodyLimit:
    """Middleware that stops reading a body that is too long."""

    def __init__(self, app: ASGIApp, most: int = MOST_BODY) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and count the bytes of its body."""
        if scope["type"] != "http" or (scope["method"] in ("PUT", "POST") and scope["path"].startswith(_FILES)):
            await self._app(scope, receive, send)
            return
        received = 0

        async def count() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._most:
                raise HTTPException(413, f"a request may have {self._most:,} bytes, and this one has more")
            return message

        await self._app(scope, count, send)
