"""Notice that a server which sends a heartbeat says nothing more.

A process that a signal has stopped keeps its connections open, so that a reader would wait for as long as a lost
network may take.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Self

from riseml.client.socket_http import PATIENCE

HEARTBEAT = 1.0
"""Seconds between two signs of life that a client asks for."""

_TICK = 0.25  # seconds


class SilenceWatch(AbstractContextManager["SilenceWatch"]):
    """Calls `tell` when a read waits for `PATIENCE` seconds, from a thread of its own, once for each such read.

    It counts its own wakes and not the seconds: a command that its user has stopped (Ctrl-Z) for a minute has not
    waited for its server. The time that the caller takes for what was read does not count.
    """

    def __init__(self, tell: Callable[[], object]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._ticks = -1  # wakes since the read began; negative: nothing is read now
        self._closed = threading.Event()

    def __enter__(self) -> Self:
        threading.Thread(target=self._count_ticks, name="silence", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()

    def watch(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Yield these pieces, each of which is read from the server."""
        while True:
            self._set_ticks(0)
            try:
                piece = next(pieces, None)
            finally:
                self._set_ticks(-1)
            if piece is None:
                return
            yield piece

    def _set_ticks(self, ticks: int) -> None:
        with self._lock:
            self._ticks = ticks

    def _count_ticks(self) -> None:
        most = int(PATIENCE / _TICK)
        while not self._closed.wait(_TICK):
            with self._lock:
                self._ticks += 0 if self._ticks < 0 else 1
                is_silent = self._ticks == most
            if is_silent:
                self._tell()
