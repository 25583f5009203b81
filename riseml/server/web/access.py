"""Access to the web page at 127.0.0.1: one-time tokens and sessions. The only I/O is the file that keeps the key.

A token from `riseml web` opens one session. A session has two halves: a cookie that scripts cannot read, and a page key
that the browser keeps for this address alone. A request needs the cookie and a proof (`page_proofs`).
Cookies of 127.0.0.1 go to every port of the machine, also to a port of another user: a cookie that leaks there is
useless without the page key, which is never sent again.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path

from riseml.base.records import dataclass
from riseml.server.web.page_proofs import PageProofs, is_equal

_TOKEN_LIFE = 600.0  # seconds in which a token can be used
_SESSION_LIFE = 30 * 86_400  # seconds until the page needs a new token
_MOST_SESSIONS = 100  # at a time; the oldest is ended
_MOST_TOKENS = 20  # unused tokens at a time; the oldest is dropped
_HIGHEST_PORT = 65_535
_SHOWN = 8  # characters of a session's identity that people see


@dataclass(frozen=True, slots=True)
class WebSession:
    """The two halves of a new session; the server gives them out only once."""

    cookie: str  # value of the cookie
    page: str  # `<session>.<page key>`, for the page alone


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session that a browser may use."""

    name: str  # the beginning of its identity, which lets no one in
    opened_at: int  # seconds since 1970
    until: int  # seconds since 1970


class WebAccess:
    """Gives out tokens and checks requests. Several threads use it.

    Args:
        file: keeps the port and the key, so that open pages survive a restart of the server.
        clock: seconds since 1970.
    """

    def __init__(self, file: Path, clock: Callable[[], float] = time.time) -> None:
        self._file = file
        self._clock = clock
        self._lock = threading.Lock()
        self._tokens: dict[bytes, float] = {}  # digest of a token -> when it expires
        self._port, self._key, self._sessions = _read_file(file)
        self.proofs = PageProofs(self.sign)

    @property
    def port(self) -> int | None:
        """The port of the last listener; None while it is closed."""
        return self._port

    def remember(self, port: int) -> None:
        """Keep the port, and a key if there is none, for the next server of this home."""
        self._port = port
        self._write_file()

    def forget(self) -> None:
        """End all sessions and tokens, and forget the port."""
        with self._lock:
            self._tokens.clear()
            self._sessions.clear()
        self._port = None
        self._key = secrets.token_bytes(32)
        self._file.unlink(missing_ok=True)

    def make_token(self) -> str:
        """Return a token that opens one session within ten minutes."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            while len(self._tokens) >= _MOST_TOKENS:
                del self._tokens[next(iter(self._tokens))]
            self._tokens[_digest_token(token)] = self._clock() + _TOKEN_LIFE
        return token

    def open_session(self, token: str) -> WebSession | None:
        """Exchange a token for a session; None when it is unknown, too old, or was used before."""
        with self._lock:
            expires = self._tokens.pop(_digest_token(token), None)
        if expires is None or expires < self._clock():
            return None
        session = secrets.token_hex(16)
        until = int(self._clock()) + _SESSION_LIFE
        with self._lock:
            self._sessions = {name: end for name, end in self._sessions.items() if end > self._clock()}
            while len(self._sessions) >= _MOST_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
            self._sessions[session] = until
            self._write_file()
        cookie = f"{session}.{until}.{self.sign(f'cookie {session} {until}')}"
        return WebSession(cookie, f"{session}.{self.proofs.make_key(session)}")

    def find_session(self, cookie: str) -> str | None:
        """Return the session of a cookie; None when this server did not give it, or when it is too old."""
        session, _, remainder = cookie.partition(".")
        until, _, signature = remainder.partition(".")
        if not (until.isascii() and until.isdigit()) or len(until) > 12:
            return None
        if not is_equal(signature, self.sign(f"cookie {session} {until}")):
            return None
        return session if int(until) > self._clock() and session in self._sessions else None

    def list_sessions(self) -> list[OpenSession]:
        """Return the sessions that a browser may use, the oldest first."""
        with self._lock:
            sessions = tuple(self._sessions.items())
        now = self._clock()
        return [OpenSession(name[:_SHOWN], until - _SESSION_LIFE, until) for name, until in sessions if until > now]

    def end_session(self, label: str) -> bool:
        """End one session, named as `list_sessions` does. Return False when there is none."""
        with self._lock:
            names = [name for name in self._sessions if name[:_SHOWN] == label]
            for name in names:
                del self._sessions[name]
            self._write_file()
        return bool(names)

    def sign(self, text: str) -> str:
        """Return a signature that this server and the next ones make, until the listener is closed for good."""
        return hmac.new(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()

    def _write_file(self) -> None:
        """Replace the file; only its user can read it, from its first moment on."""
        new = self._file.with_suffix(".new")
        new.unlink(missing_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w") as file:
            json.dump({"port": self._port, "key": self._key.hex(), "sessions": self._sessions}, file)
        new.replace(self._file)


def _read_file(file: Path) -> tuple[int | None, bytes, dict[str, int]]:
    """Return the port, the key and the sessions of the file; no port and a new key when it is missing or damaged."""
    try:
        document = json.loads(file.read_text())
        port = int(document["port"])
        key = bytes.fromhex(document["key"])
        sessions = {str(name): int(until) for name, until in document.get("sessions", {}).items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None, secrets.token_bytes(32), {}
    is_sound = 0 < port <= _HIGHEST_PORT and len(key) == 32
    return (port, key, sessions) if is_sound else (None, secrets.token_bytes(32), {})


def _digest_token(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
