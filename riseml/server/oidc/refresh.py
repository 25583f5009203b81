"""The role of a user while a session goes on: the provider is asked again with the refresh token of the login.

The store has the token sealed with the secret of the session: neither the database nor the files of the server open it
without the client. A provider that gives no refresh token is asked at the next login.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import secrets
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

from riseml.base.errors import Refused, RisemlError, Unreachable
from riseml.server.oidc.admission import Admission
from riseml.server.oidc.provider import Provider
from riseml.store.sessions import Session, SessionStore

_PERIOD = timedelta(minutes=15)  # between two questions
_NONCE = 12  # bytes

log = logging.getLogger(__name__)


class SessionRefresh:
    """Asks the provider again about sessions that it has opened. Threads use it."""

    def __init__(
        self, provider: Provider, admission: Admission, sessions: SessionStore, clock: Callable[[], datetime]
    ) -> None:
        self._provider = provider
        self._admission = admission
        self._sessions = sessions
        self._clock = clock
        self._lock = threading.Lock()
        self._busy: set[str] = set()  # sessions about which the provider is asked now

    def is_admitted(self, session: Session, secret: str) -> bool:
        """Return False when the provider lets the user of a session in no more: the session has ended.

        While the provider does not answer, what it has said before holds.
        """
        if session.refresh is None or session.checked_at is None or self._clock() - session.checked_at < _PERIOD:
            return True
        with self._lock:
            if session.id in self._busy:
                return True
            self._busy.add(session.id)
        try:
            return self._ask(session, session.refresh, secret)
        finally:
            with self._lock:
                self._busy.discard(session.id)

    def _ask(self, session: Session, sealed: str, secret: str) -> bool:
        token = open_refresh(sealed, secret)
        subject = self._admission.subjects.find_subject(session.user)
        moment = self._clock()
        try:
            if token is None or subject is None:
                raise Refused("the session has no usable refresh token")
            answer = self._provider.refresh(token, subject)
            if self._admission.admit(answer.identity, moment).name != session.user:
                raise Refused("the provider has answered for another person")
            self._sessions.note_check(session.id, seal_refresh(answer.refresh or token, secret), moment)
        except Unreachable as error:
            log.warning("session %s goes on without a word of the provider: %s", session.id, error.message)
        except RisemlError as error:
            log.info("session %s of %s has ended: %s", session.id, session.user, error.message)
            self._sessions.end(session.id)
            return False
        return True


def seal_refresh(token: str, secret: str) -> str:
    """Return a refresh token as the store has it, sealed with the secret of its session."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = secrets.token_bytes(_NONCE)
    return base64.b64encode(nonce + AESGCM(_derive(secret)).encrypt(nonce, token.encode(), None)).decode()


def open_refresh(sealed: str, secret: str) -> str | None:
    """Return a sealed refresh token; None when another secret has sealed it."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    with suppress(ValueError, InvalidTag):
        data = base64.b64decode(sealed, validate=True)
        return AESGCM(_derive(secret)).decrypt(data[:_NONCE], data[_NONCE:], None).decode()
    return None


def _derive(secret: str) -> bytes:
    return hashlib.blake2b(secret.encode(), digest_size=32, person=b"riseml refresh").digest()
