"""When an engine was away, and which jobs it took with it.

An engine that is told to stop ends its containers, and one that was killed without `live-restore` ends them when it is
back. Both look like somebody's `kill`; what tells them apart is that the engine was away around that moment.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from riseml.model import ContainerSeen

STOPPED = "the engine was stopped while it ran"

_CODES = frozenset({137, 143, 255})  # SIGKILL, SIGTERM, and what the engine writes when it does not know
_EARLY = timedelta(seconds=30)  # an engine that stops lets its containers end first, and some take their time


def is_doubtful(found: ContainerSeen) -> bool:
    """True when it may have ended together with its engine."""
    return found.exit_code in _CODES and not found.oom


@dataclass(frozen=True, slots=True)
class Outages:
    """The last time that an engine did not answer: since when, and until when (None: it has not come back)."""

    since: datetime | None = None
    until: datetime | None = None

    def begun(self) -> Outages:
        """It does not answer now."""
        if self.since is not None and self.until is None:
            return self
        return Outages(_now())

    def over(self) -> Outages:
        """It answers now."""
        return self if self.since is None or self.until is not None else replace(self, until=_now())

    def explain(self, found: ContainerSeen) -> ContainerSeen:
        """The same, with the engine as its error when it ended together with it."""
        at, since = found.finished_at, self.since
        if not is_doubtful(found) or at is None or since is None or at < since - _EARLY:
            return found
        return found if self.until is not None and at > self.until else replace(found, error=STOPPED)


def _now() -> datetime:
    return datetime.fromtimestamp(time.time(), UTC)
