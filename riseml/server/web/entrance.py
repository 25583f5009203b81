"""What the gate of a page asks about a browser: under which names it comes, how it gets a session, which one it has."""

from __future__ import annotations

from http import HTTPStatus
from typing import Protocol

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope

from riseml.server.gate.page_session import PageSession
from riseml.server.web.page_proofs import PageProofs

READS = ("GET", "HEAD")
"""Methods that change nothing."""


class Entrance(Protocol):
    """The part of the gate that a page at 127.0.0.1 and a page over TLS do not share."""

    @property
    def proofs(self) -> PageProofs:
        """What checks the proofs of its pages."""

    @property
    def no_session(self) -> tuple[str, str]:
        """The message and the hint for a browser without a session."""

    def check_sender(self, scope: Scope) -> Response | None:
        """Return the refusal of a request under a foreign name, or from a foreign page."""

    async def answer(self, scope: Scope, receive: Receive) -> Response | None:
        """Return the answer at an address where browsers get a session; None: it is another address."""

    async def find_session(self, scope: Scope) -> PageSession | None:
        """Return the session of a request; None when it has none that may pass.

        Raises:
            RisemlError: it cannot be said now.
        """


def check_origin(scope: Scope, scheme: str) -> Response | None:
    """Return the refusal of a request from a page of another origin; a write must say its origin.

    Args:
        scope: of a request whose `Host` was checked.
        scheme: of the page: `http` or `https`.
    """
    headers = Headers(scope=scope)
    method = scope.get("method", "GET")  # a stream begins with a GET
    origins = headers.getlist("origin")
    wrong = origins not in ([], [f"{scheme}://{headers['host']}"])
    if wrong or (method not in READS and not origins):
        return PlainTextResponse("This request comes from another page.\n", HTTPStatus.FORBIDDEN)
    return None
