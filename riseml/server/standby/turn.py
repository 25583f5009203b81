"""When a standby may take the place of the server that it waits for."""

from __future__ import annotations

import logging
import time
from contextlib import closing

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from riseml.base.errors import StoreError
from riseml.base.records import dataclass
from riseml.base.settings import Settings
from riseml.server.home_lock import HomeLock
from riseml.store.claim import ClaimState, read_claim
from riseml.store.database import open_claim_reader

_LOOK = 0.5  # seconds that the answer of the database may take

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Awaited:
    """The server that a standby waits for."""

    holder: str  # in words
    since: str = ""  # RFC 3339; empty: not known
    address: str = ""  # where clients reach it; empty: not known


class Turn:
    """Looks whether the other server is gone.

    On SQLite that is so when the lock of the home is free. On PostgreSQL the claim on the database decides: its server
    has ended, has died on this machine, where the lock of the home is free then, or has not renewed its claim.

    Args:
        settings: name the home and the store.
        lock: of the home. While this server waits it holds the lock only if its turn has come.
    """

    def __init__(self, settings: Settings, lock: HomeLock) -> None:
        self._settings = settings
        self._lock = lock
        self._engine: Engine | None = None
        self._problem = ""
        self._free_since: float | None = None  # on the monotonic clock; None: the lock of the home was taken last
        self.awaited = Awaited(f"the server of {settings.home}")

    def has_come(self) -> bool:
        """Return True when this server may try to take the claim.

        Raises:
            StoreError: the home is not the one of the server that holds the claim.
        """
        is_free = self._lock.try_take()
        if self._settings.store is None:
            return is_free
        state, is_known = self._read_claim()
        if self._settings.local is not None and state is not None:
            self._check_same_folder(state, is_free=is_free)
        may = is_known and (state is None or _is_over(state, self._lock.describe(), is_free=is_free))
        if is_free and not may:
            self._lock.give_back()
        return may

    def _check_same_folder(self, state: ClaimState, *, is_free: bool) -> None:
        """Refuse a home whose lock is free although the holder of the claim, which has the lock of its home, lives: it
        has renewed its claim after a look at the free lock.
        """
        moment = time.monotonic()
        if not is_free:
            self._free_since = None
            return
        if self._free_since is None:
            self._free_since = moment
        holder = state.holder
        is_other = holder.shared and holder.lock not in ("", self._lock.describe()) and not holder.released
        if is_other and state.silence < moment - self._free_since - _LOOK:
            raise StoreError(
                f"RISEML_HOME {self._settings.home} is not the folder of {holder.holder}: that one serves, and has"
                " locked its folder, while this one is free",
                "mount the folder of that server here, from a file system whose locks hold on all machines; a copy of"
                " the folder cannot take its place",
            )

    def close(self) -> None:
        """Close the connection to the database."""
        if self._engine is not None:
            self._engine.dispose()

    def _read_claim(self) -> tuple[ClaimState | None, bool]:
        """Return the claim, and True when the database has answered."""
        try:
            self._engine = self._engine or open_claim_reader(str(self._settings.store))
            with closing(self._engine.connect()) as connection:
                state = read_claim(connection)
        except SQLAlchemyError as error:
            if not self._problem:
                log.warning("the store does not answer, and this standby waits for it: %s", error)
            self._problem = str(error)
            return None, False
        if self._problem:
            log.info("the store answers again")
        self._problem = ""
        if state is not None:
            self.awaited = Awaited(state.holder.holder, state.holder.since, state.holder.address)
        return state, True


def _is_over(state: ClaimState, lock: str, *, is_free: bool) -> bool:
    holder = state.holder
    if not holder.token or holder.released or state.is_expired:
        return True
    # a server without a standby holds its claim for as long as it lives: on this machine, with the lock of the home
    return is_free if not holder.shared else bool(lock) and holder.lock == lock
