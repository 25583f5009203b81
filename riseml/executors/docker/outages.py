"""When an engine was away, and which jobs ended with it.

An engine that is stopped ends its containers; an engine that was killed without `live-restore` ends them when it
starts again. Both look like a `kill` by a user. The difference is that the engine did not answer around that moment.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from riseml.base.records import dataclass
from riseml.model import ContainerObservation

STOPPED = "the engine was stopped while it ran"

_UNKNOWN = 255  # the exit code of a container whose end the engine did not see; it dates the end at its own start
_CODES = frozenset({137, 143, _UNKNOWN})  # of SIGKILL and SIGTERM, too
_EARLY = timedelta(seconds=30)  # an engine that stops ends its containers first, which may take this long
_LATE = timedelta(seconds=10)  # an engine that starts may answer while it still ends containers


def is_doubtful(container: ContainerObservation) -> bool:
    """Return True when a container may have ended together with its engine."""
    return container.exit_code in _CODES and not container.oom


@dataclass(frozen=True, slots=True)
class Outages:
    """The last time that an engine did not answer."""

    since: datetime | None = None  # None: it always answered
    until: datetime | None = None  # None: it does not answer now

    def mark_away(self, now: datetime) -> Outages:
        """Return the outages of an engine that does not answer now."""
        if self.since is not None and self.until is None:
            return self
        return Outages(now)

    def mark_back(self, now: datetime) -> Outages:
        """Return the outages of an engine that answers now."""
        return self if self.since is None or self.until is not None else replace(self, until=now)

    def explain_end(self, container: ContainerObservation) -> ContainerObservation:
        """Return a container with STOPPED as its error when it ended together with the engine, else unchanged."""
        at = container.finished_at
        since = self.since
        if not is_doubtful(container) or at is None or since is None or at < since - _EARLY:
            return container
        if self.until is not None and at > self.until + _LATE:
            return container
        ended = None if container.exit_code == _UNKNOWN else at
        return replace(container, error=STOPPED, finished_at=ended)
