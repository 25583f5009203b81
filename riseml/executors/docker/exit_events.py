"""The end of a container as the engine's events report it.

The engine sends the event of an exit at once. An inspection of that container blocks until the engine has dismantled
its network, which takes longer than the rest of the server's work for an exit. So for an exit that needs no explanation
(exit code 0, or any code after a signal of the server) the event is enough. Its log is closed before the event is sent.

An out-of-memory kill has its own event. It mostly arrives before the exit event, and an inspection then shows
it; on a busy machine it arrives later, and only the event shows it. The engine watches the memory of a container only
once it runs: a kill in the first tenths of a second may have no event at all (seen with Engine 20.10 and 26.1).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from riseml.base.records import dataclass
from riseml.executors.logs.timestamps import to_datetime

_LATE = 0.5
"""Seconds that the out-of-memory event may arrive after the exit event; 0.26 were seen on a busy machine.

Meanwhile the job counts as running. Its peers fail within a second or two, and must not look like the cause.
"""

Clock = Callable[[], float]
"""Returns seconds that only grow."""


@dataclass(frozen=True, slots=True)
class ContainerEvents:
    """What the events have reported about one container until now."""

    changed: bool = False  # there was an event since the last observation
    exit_code: int | None = None  # code of the exit event; None: no exit event
    finished_at: datetime | None = None  # time of the exit event
    signalled: bool = False  # the server has sent it a signal
    out_of_memory: bool = False  # the out-of-memory event has arrived
    settles_in: float = 0.0  # seconds in which that event may still arrive; 0 without an exit event

    @property
    def tells_everything(self) -> bool:
        """True when the exit needs no inspection."""
        if self.exit_code is None or self.out_of_memory:
            return False
        return self.exit_code == 0 or (self.exit_code > 0 and self.signalled)


@dataclass(frozen=True, slots=True)
class _ExitEvent:
    """An exit event."""

    name: str  # name of the container
    code: int
    at: datetime  # by the engine's clock
    heard_at: float  # by the clock of ExitEvents


class ExitEvents:
    """Collects events in one thread for the observations of another.

    Args:
        clock: measures how long ago an exit event arrived.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._changed: set[str] = set()  # ids of containers
        self._signalled: set[str] = set()  # names of containers
        self._out_of_memory: set[str] = set()  # ids
        self._exits: dict[str, _ExitEvent] = {}  # by id

    def note_signal(self, name: str) -> None:
        """Remember that the server has sent a signal to the container with this name."""
        with self._lock:
            self._signalled.add(name)

    def note_event(self, event: Mapping[str, Any]) -> None:
        """Take in an event of `GET /events` about a container."""
        identity = event["Actor"]["ID"]
        attributes = event["Actor"].get("Attributes") or {}
        name = attributes.get("name", "")
        code = attributes.get("exitCode", "")
        with self._lock:
            self._changed.add(identity)
            match event.get("Action"):
                case "oom":
                    self._out_of_memory.add(identity)
                case "start" | "destroy":
                    self._exits.pop(identity, None)
                    self._out_of_memory.discard(identity)
                    self._signalled.discard(name)
                case "die" if code.isdigit() and "timeNano" in event:
                    self._exits[identity] = _ExitEvent(name, int(code), to_datetime(event["timeNano"]), self._clock())

    def take_changed(self) -> frozenset[str]:
        """Return the ids of the containers that had an event since the last call."""
        with self._lock:
            changed, self._changed = frozenset(self._changed), set()
        return changed

    def find_events(self, identity: str, *, changed: bool) -> ContainerEvents:
        """Return what the events have reported about the container with this id; the result contains `changed`."""
        with self._lock:
            end = self._exits.get(identity)
            out_of_memory = identity in self._out_of_memory
            if end is None:
                return ContainerEvents(changed, out_of_memory=out_of_memory)
            return ContainerEvents(
                changed,
                exit_code=end.code,
                finished_at=end.at,
                signalled=end.name in self._signalled,
                out_of_memory=out_of_memory,
                settles_in=max(0.0, end.heard_at + _LATE - self._clock()),
            )
