"""The addresses under which a browser sees the program of a job, such as TensorBoard: each is an origin of its own.

A job serves foreign code. At the address of the page it could use the page's session; so it gets the host
`<label>.localhost` at the same port, which browsers treat as another site. A label names an experiment and cannot be
guessed, because the server's key signs it. The label alone is not enough: the page's one-time token is exchanged for a
cookie of this host, which scripts cannot read. The server keeps only unused tokens, so that an open TensorBoard
survives a restart of the server; `riseml web --stop` ends all of them.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
import time
from collections.abc import Callable

from riseml.base.records import dataclass

_TOKEN_LIFE = 60.0  # seconds; the page uses it at once
_ADMISSION_LIFE = 7 * 86_400  # seconds
_MOST_TOKENS = 20  # unused tokens at a time; the oldest is dropped
_NAME = re.compile(r"[0-9]{1,10}(\.[0-9]{1,10})?", re.ASCII)
_LABEL = re.compile(r"([0-9]{1,10}(?:-[0-9]{1,10})?)-([0-9a-f]{40})", re.ASCII)


@dataclass(frozen=True, slots=True)
class ProxiedAppInvitation:
    """The address and one-time token that lead a browser to the program of a job."""

    label: str  # the first part of its host: `<label>.localhost`
    token: str


class ProxiedApps:
    """Gives out addresses, and checks who may use them. Several threads use it.

    Args:
        sign: signs a text with the key of the web access.
        clock: seconds since 1970.
    """

    def __init__(self, sign: Callable[[str], str], clock: Callable[[], float] = time.time) -> None:
        self._sign = sign
        self._clock = clock
        self._lock = threading.Lock()
        self._tokens: dict[bytes, tuple[str, float]] = {}  # digest of a token -> its label, and when it expires

    def invite(self, experiment: str) -> ProxiedAppInvitation:
        """Return what leads a browser to the program of an experiment within a minute.

        Args:
            experiment: `4`, or `144.3`.
        """
        if not _NAME.fullmatch(experiment):
            raise ValueError(f"{experiment!r} is not the name of an experiment")
        label = self._make_label(experiment)
        token = secrets.token_urlsafe(32)
        with self._lock:
            while len(self._tokens) >= _MOST_TOKENS:
                del self._tokens[next(iter(self._tokens))]
            self._tokens[_digest_token(token)] = label, self._clock() + _TOKEN_LIFE
        return ProxiedAppInvitation(label, token)

    def find_experiment(self, label: str) -> str | None:
        """Return the experiment of a label; None when this server did not give it."""
        match = _LABEL.fullmatch(label)
        if match is None:
            return None
        experiment = match[1].replace("-", ".")
        return experiment if hmac.compare_digest(label, self._make_label(experiment)) else None

    def admit(self, label: str, token: str) -> str | None:
        """Exchange a token for the cookie of its host; None when it is unknown, too old, used, or of another host."""
        with self._lock:
            token_label, expires = self._tokens.pop(_digest_token(token), ("", 0.0))
        if expires < self._clock() or token_label != label:
            return None
        until = int(self._clock()) + _ADMISSION_LIFE
        return f"{until}.{self._sign_admission(label, str(until))}"

    def is_admitted(self, label: str, cookie: str) -> bool:
        """Return True when this server gave the cookie to a browser, for this host."""
        until, _, signature = cookie.partition(".")
        if not (until.isascii() and until.isdigit()) or len(until) > 12:
            return False
        expected = self._sign_admission(label, until)
        return hmac.compare_digest(signature.encode("utf-8", "surrogatepass"), expected.encode()) and (
            int(until) > self._clock()
        )

    def _make_label(self, experiment: str) -> str:
        return f"{experiment.replace('.', '-')}-{self._sign(f'app {experiment}')[:40]}"

    def _sign_admission(self, label: str, until: str) -> str:
        return self._sign(f"admission {label} {until}")


def _digest_token(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
