"""Sessions of browsers, and the proofs that their pages make."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from riseml.server.web.access import WebAccess, WebSession
from riseml.server.web.page_proofs import PageProofs


class Clock:
    """A time of day that a test sets, in seconds."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def open_session(access: WebAccess) -> WebSession:
    session = access.open_session(access.make_token())
    assert session is not None
    return session


def prove(access: WebAccess, session: WebSession, request: str) -> str:
    return prove_with(access.proofs, session.page.partition(".")[2], request)


def prove_with(proofs: PageProofs, key: str, request: str) -> str:
    """Return the proof of a request, made with a page key."""
    nonce = secrets.token_hex(16)
    text = f"{proofs.challenge}\n{nonce}\n{request}".encode()
    return f"{nonce}.{hmac.new(key.encode(), text, hashlib.sha256).hexdigest()}"
