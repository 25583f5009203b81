"""How much is open, for each first answer to a command: also while the store does not answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Overdue

from riseml.base.errors import StoreError
from riseml.base.records import dataclass

_PATIENCE = 1.5  # seconds; the command says after 3 that the server does not answer


@dataclass(frozen=True, slots=True)
class OpenCounts:
    """How much is open; the last known numbers when there is a problem."""

    active: int  # experiments that have not ended
    closing: int  # experiments that have ended, and of which something is left on a host
    searches: int  # that make further trials
    problem: str = ""  # why the store did not say; empty: it did


class OpenCounter:
    """Counts what is open in the store. Safe from many threads.

    Args:
        read: asks the store.
        store: its address for people.
        may_hang: the store is elsewhere, and may be silent without end.
    """

    def __init__(self, read: Callable[[], OpenCounts], store: str, *, may_hang: bool) -> None:
        self._read = read
        self._store = store
        self._readers = ThreadPoolExecutor(1, "counts") if may_hang else None
        self._pending: Future[OpenCounts] | None = None
        self._lock = threading.Lock()
        self._last = OpenCounts(0, 0, 0)

    def count(self) -> OpenCounts:
        """Return how much is open, after 1.5 seconds at the latest."""
        try:
            counts = self._last = self._read() if self._readers is None else self._await_reader(self._readers)
        except StoreError as error:
            problem = f"{error.message}; {error.hint}" if error.hint else error.message
        except Overdue:
            problem = f"the store {self._store} has not answered for {_PATIENCE:g} s; is PostgreSQL running there?"
        else:
            return counts
        last = self._last
        return OpenCounts(last.active, last.closing, last.searches, problem)

    def _await_reader(self, readers: ThreadPoolExecutor) -> OpenCounts:
        """Return what the reader finds. While it hangs, no further one is started."""
        with self._lock:
            if self._pending is None or self._pending.done():
                self._pending = readers.submit(self._read)
            pending = self._pending
        return pending.result(_PATIENCE)
