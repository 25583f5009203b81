"""The login of a command at the provider (RFC 8628): the user opens an address anywhere, and types a code.

The server drives it as the client that the provider knows: the command learns the code for its user, and in the end a
session of riseml. The tokens of the provider and the secret of the client stay on the server.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Callable
from dataclasses import replace

from riseml.base.errors import Refused, TooManyAttempts
from riseml.base.records import dataclass
from riseml.server.oidc.provider import DeviceStart, LoggedIn, LoginEnded, NotConfirmed, Provider

_MOST_OF_ADDRESS = 5  # logins that wait, from one address
_MOST = 200  # from all addresses
_SLOWER = 5.0  # seconds, as RFC 8628 says


@dataclass(frozen=True, slots=True)
class _WaitingDevice:
    """A login that nobody has confirmed yet."""

    start: DeviceStart
    address: str  # of the command
    until: float  # by the clock
    interval: float  # seconds between two questions
    next_at: float  # when the provider may be asked again


class DeviceLogins:
    """The logins of commands that wait. Threads use it.

    Args:
        provider: where users log in.
        clock: seconds, from any beginning.
    """

    def __init__(self, provider: Provider, clock: Callable[[], float]) -> None:
        self._provider = provider
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: dict[str, _WaitingDevice] = {}  # by the digest of their name

    def begin(self, address: str) -> tuple[str, DeviceStart]:
        """Begin a login; return its name, which the command alone knows, and what its user gets to see.

        Raises:
            TooManyAttempts: too many logins wait already.
            Unreachable, Refused: as `Provider.begin_device`.
        """
        with self._lock:
            self._forget_old()
            own = sum(waiting.address == address for waiting in self._waiting.values())
            if own >= _MOST_OF_ADDRESS or len(self._waiting) >= _MOST:
                raise TooManyAttempts("too many logins wait for their users", "confirm them, or wait ten minutes")
        start = self._provider.begin_device()
        name = secrets.token_urlsafe(32)
        now = self._clock()
        waiting = _WaitingDevice(start, address, now + start.expires_in, start.interval, now + start.interval)
        with self._lock:
            self._waiting[_digest(name)] = waiting
        return name, start

    def ask(self, name: str) -> LoggedIn | float:
        """Return who has logged in; or after how many seconds the command may ask again. A login ends once.

        Raises:
            LoginEnded: the user has refused it, or it is too old.
            Unreachable, Refused: as `Provider.redeem_device`.
        """
        digest = _digest(name)
        with self._lock:
            self._forget_old()
            waiting = self._waiting.get(digest)
            if waiting is None:
                raise LoginEnded("this login is not known, or it is too old", "log in again")
            pause = waiting.next_at - self._clock()
            if pause > 0:
                return pause
            self._waiting[digest] = replace(waiting, next_at=self._clock() + waiting.interval)
        try:
            answer = self._provider.redeem_device(waiting.start.device_code)
        except NotConfirmed as error:
            interval = waiting.interval + (_SLOWER if error.slower else 0)
            with self._lock:
                if digest in self._waiting:
                    self._waiting[digest] = replace(waiting, interval=interval, next_at=self._clock() + interval)
            return interval
        except Refused:
            self._forget(digest)
            raise
        self._forget(digest)
        return answer

    def _forget(self, digest: str) -> None:
        with self._lock:
            self._waiting.pop(digest, None)

    def _forget_old(self) -> None:
        for digest in [digest for digest, waiting in self._waiting.items() if waiting.until <= self._clock()]:
            del self._waiting[digest]


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
