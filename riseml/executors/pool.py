"""Many hosts: one worker and one deadline each, so that a stuck host delays nobody but itself."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import datetime, timedelta

from riseml.errors import EngineError, RisemlError
from riseml.executors.base import Executor
from riseml.model import Capacity, HostSeen
from riseml.names import HostName

Report = Callable[[HostName, RisemlError], None]
Clock = Callable[[], float]
"""Seconds that only ever grow, and stand still while this machine sleeps."""

_JUMP = timedelta(seconds=2)  # by which the time of day may be off before it counts as set, or slept through

log = logging.getLogger(__name__)


class HostPool:
    """The hosts, and what was last seen of each.

    Args:
        executors: one for each host.
        patience: seconds that a pass waits for the answers.
        report: told of every host that fails to answer.
        clock: measures for how long a host has been silent.
    """

    def __init__(
        self, executors: tuple[Executor, ...], patience: float, report: Report, clock: Clock = time.monotonic
    ) -> None:
        self.executors: Mapping[HostName, Executor] = {}
        self._patience = patience
        self._report = report
        self._clock = clock
        self._watches: Mapping[HostName, _Watch] = {}
        self.replace(executors)

    def replace(self, executors: tuple[Executor, ...]) -> None:
        """Use these from now on. What was seen of a host whose executor stays is kept."""
        watches = {watch.executor: watch for watch in self._watches.values()}
        self._watches = {one.name: watches.get(one) or _Watch(one, self._report, self._clock) for one in executors}
        self.executors = {executor.name: executor for executor in executors}

    def observe(self, references: frozenset[str], now: datetime) -> dict[HostName, HostSeen]:
        """Every host that has ever answered; one that does not answer now as it was last seen, silent since then."""
        asked = [watch.ask(references) for watch in self._watches.values()]
        wait([future for future, silent in asked if not silent], timeout=self._patience)
        seen = {name: watch.collect(now) for name, watch in self._watches.items()}
        return {name: host for name, host in seen.items() if host is not None}

    def capacities(self) -> dict[HostName, Capacity]:
        """What every host that answers could hold if it were empty."""
        found = {name: watch.seen for name, watch in self._watches.items()}
        return {name: host.capacity for name, host in found.items() if host is not None and host.silent_since is None}

    def answers(self) -> bool:
        """True when a host answers, or is only slow: it did before, and nothing is known to be wrong with it."""
        return any(
            watch.seen is not None and (watch.seen.silent_since is None or watch.trouble is None)
            for watch in self._watches.values()
        )

    def last_seen(self) -> dict[HostName, HostSeen]:
        """Every host that has ever answered, as it was last seen."""
        found = {name: watch.seen for name, watch in self._watches.items()}
        return {name: host for name, host in found.items() if host is not None}

    def troubles(self) -> dict[HostName, RisemlError]:
        """Why each silent host does not answer."""
        found = {name: watch.trouble for name, watch in self._watches.items()}
        return {name: trouble for name, trouble in found.items() if trouble is not None}

    def trouble(self) -> RisemlError | None:
        """Why the first silent host does not answer."""
        return next((watch.trouble for watch in self._watches.values() if watch.trouble is not None), None)


class _Watch:
    """One host: at most one question under way."""

    def __init__(self, executor: Executor, report: Report, clock: Clock) -> None:
        self.executor = executor
        self.seen: HostSeen | None = None
        self.trouble: RisemlError | None = None
        self._report = report
        self._clock = clock
        self._worker = ThreadPoolExecutor(1, thread_name_prefix=f"observe-{executor.name}")
        self._question: Future[HostSeen] | None = None
        self._silent_since: datetime | None = None
        self._silent_at = 0.0  # the same by the clock

    def ask(self, references: frozenset[str]) -> tuple[Future[HostSeen], bool]:
        """The question under way, and whether the host is known to be silent (nobody waits for it then)."""
        if self._question is None:
            self._question = self._worker.submit(self.executor.observe, references)
        return self._question, self._silent_since is not None and self.seen is not None

    def collect(self, now: datetime) -> HostSeen | None:
        """What is known now."""
        if self._question is None or not self._question.done():
            self._note_silence(now)
        else:
            trouble = self._read(self._question)
            self._question = None
            if trouble is None:
                self._silent_since = self.trouble = None
            else:
                if self.trouble is None:
                    self._report(self.executor.name, trouble)
                self.trouble = trouble
                self._note_silence(now)
        if self.seen is not None:
            self.seen = replace(self.seen, silent_since=self._silent_since)
        return self.seen

    def _read(self, answer: Future[HostSeen]) -> RisemlError | None:
        """Take the answer in; what is wrong with it, for that is the trouble of this host alone."""
        try:
            self.seen = answer.result()
        except RisemlError as error:
            return error
        except Exception as error:
            log.exception("what host %s answered cannot be read", self.executor.name)
            return EngineError(f"what it answered cannot be read: {error!r}", "see the server's log")
        return None

    def _note_silence(self, now: datetime) -> None:
        """Since when it is silent. A laptop that sleeps hears nothing of its hosts: that time does not count against
        them, nor does a time of day that somebody has set.
        """
        if self._silent_since is None:
            self._silent_since, self._silent_at = now, self._clock()
        silent = timedelta(seconds=self._clock() - self._silent_at)
        if abs(now - self._silent_since - silent) > _JUMP:
            self._silent_since = now - silent
