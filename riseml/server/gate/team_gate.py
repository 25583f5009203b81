"""The gate of a team's listener over TLS: commands and scripts come with a key, browsers with the session of a page."""

from __future__ import annotations

import re

from starlette.types import ASGIApp, Receive, Scope, Send

_BY_KEY = re.compile(r"/(v1/(?!login(/|$)).*|health|metrics|openapi\.json)", re.ASCII | re.DOTALL)


class TeamGate:
    """The application at the listener.

    Args:
        by_key: answers the API to those who send a key, and whether the server is there.
        page: answers everything else: the files of the page, its requests below /api, and how to log in.
    """

    def __init__(self, by_key: ASGIApp, page: ASGIApp) -> None:
        self._by_key = by_key
        self._page = page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        answers = self._by_key if _BY_KEY.fullmatch(scope["path"]) else self._page
        await answers(scope, receive, send)
