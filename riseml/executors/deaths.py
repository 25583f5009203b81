"""What the engine's events say of the end of a container.

An engine tells of an exit at once, and then answers no question about that container until it has taken its network
apart, which lasts longer than everything that is done about the exit. So an exit that leaves nothing to ask is taken
from its event: one that went well, and one that we asked for. Its log was closed before the event was sent.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from riseml.model import ContainerSeen

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Deaths:
    """Events noted by one thread, and used by another. A container is named by its id, what was asked by its name."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changed: set[str] = set()
        self._asked: set[str] = set()
        self._starved: set[str] = set()
        self._ends: dict[str, tuple[str, int, datetime]] = {}

    def ask(self, name: str) -> None:
        """A container is about to be signalled by us."""
        with self._lock:
            self._asked.add(name)

    def note(self, event: Mapping[str, Any]) -> None:
        """Something happened to a container."""
        identity, told = event["Actor"]["ID"], event["Actor"].get("Attributes") or {}
        with self._lock:
            self._changed.add(identity)
            match event.get("Action"):
                case "oom":
                    self._starved.add(identity)
                case "start" | "destroy":
                    self._ends.pop(identity, None)
                    self._starved.discard(identity)
                    self._asked.discard(told.get("name", ""))
                case "die" if told.get("exitCode", "").isdigit() and "timeNano" in event:
                    at = _EPOCH + timedelta(microseconds=event["timeNano"] // 1000)
                    self._ends[identity] = (told.get("name", ""), int(told["exitCode"]), at)

    def take_changed(self) -> frozenset[str]:
        """The containers of which something was noted since the last call."""
        with self._lock:
            changed, self._changed = frozenset(self._changed), set()
        return changed

    def end(self, known: ContainerSeen) -> ContainerSeen | None:
        """A container that ran when it was last seen, as its end left it; None when the engine has to be asked."""
        with self._lock:
            name, code, at = self._ends.get(known.id, ("", -1, _EPOCH))
            plain = code == 0 or (code > 0 and name in self._asked)
            if not plain or known.id in self._starved:
                return None
        return replace(known, exit_code=code, finished_at=at)
