"""What the engine's events say of the end of a container.

An engine tells of an exit at once, and then answers no question about that container until it has taken its network
apart, which lasts longer than everything that is done about the exit. So an exit that leaves nothing to ask is taken
from its event: one that went well, and one that we asked for. Its log was closed before the event was sent.

That a container was out of memory is an event of its own. It mostly comes before that of the end, and the engine then
answers so when it is asked; on a busy machine it comes after it, and then nothing but the event tells of it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from riseml.executors.timestamps import to_datetime
from riseml.model import ContainerSeen

_LATE = 0.5  # seconds that the event of the memory may come after that of the end


@dataclass(frozen=True, slots=True)
class _End:
    """An exit as its event told it; `heard` is the monotonic time when it came here."""

    name: str
    code: int
    at: datetime
    heard: float


class ExitEvents:
    """Events noted by one thread, and used by another. A container is named by its id, what was asked by its name."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._changed: set[str] = set()
        self._asked: set[str] = set()
        self._starved: set[str] = set()
        self._ends: dict[str, _End] = {}

    def ask(self, name: str) -> None:
        """A container is about to be signalled by us."""
        with self._lock:
            self._asked.add(name)

    def note(self, event: Mapping[str, Any]) -> None:
        """Something happened to a container."""
        identity, told = event["Actor"]["ID"], event["Actor"].get("Attributes") or {}
        with self._lock:
            self._changed.add(identity)
            self._lock.notify_all()
            match event.get("Action"):
                case "oom":
                    self._starved.add(identity)
                case "start" | "destroy":
                    self._ends.pop(identity, None)
                    self._starved.discard(identity)
                    self._asked.discard(told.get("name", ""))
                case "die" if told.get("exitCode", "").isdigit() and "timeNano" in event:
                    at = to_datetime(event["timeNano"])
                    self._ends[identity] = _End(told.get("name", ""), int(told["exitCode"]), at, time.monotonic())

    def take_changed(self) -> frozenset[str]:
        """The containers of which something was noted since the last call."""
        with self._lock:
            changed, self._changed = frozenset(self._changed), set()
        return changed

    def end(self, known: ContainerSeen) -> ContainerSeen | None:
        """A container that ran when it was last seen, as its end left it; None when the engine has to be asked."""
        with self._lock:
            found = self._ends.get(known.id)
            if found is None or known.id in self._starved:
                return None
            plain = found.code == 0 or (found.code > 0 and found.name in self._asked)
        return replace(known, exit_code=found.code, finished_at=found.at) if plain else None

    def starved(self, identity: str) -> bool:
        """True when a process of this container, which has ended, was killed for want of memory.

        Waits for an event that may still be on its way: half a second at most after that of the end, and not at all
        when that has not come either.
        """
        with self._lock:
            end = self._ends.get(identity)
            if end is not None:
                rest = end.heard + _LATE - time.monotonic()
                self._lock.wait_for(lambda: identity in self._starved, max(rest, 0))
            return identity in self._starved
