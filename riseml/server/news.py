"""Who waits for news of an experiment is woken from any thread. News carry nothing: the reader looks for itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class News:
    """Subscriptions by experiment."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[int, set[asyncio.Event]] = {}
        self._loops: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}

    def publish(self, experiment: int) -> None:
        """Something of this experiment is new."""
        with self._lock:
            targets = [(self._loops[event], event) for event in self._waiting.get(experiment, ())]
        for loop, event in targets:
            loop.call_soon_threadsafe(event.set)

    @contextmanager
    def subscribe(self, experiments: tuple[int, ...]) -> Iterator[asyncio.Event]:
        """An event that is set whenever something of these experiments is new; the reader clears it before it looks."""
        event = asyncio.Event()
        with self._lock:
            self._loops[event] = asyncio.get_running_loop()
            for experiment in experiments:
                self._waiting.setdefault(experiment, set()).add(event)
        try:
            yield event
        finally:
            with self._lock:
                del self._loops[event]
                for experiment in experiments:
                    self._waiting[experiment].discard(event)
                    if not self._waiting[experiment]:
                        del self._waiting[experiment]
