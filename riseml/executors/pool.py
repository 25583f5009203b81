"""All hosts of the server: one thread and one deadline each, so that a host that does not answer delays no other."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import datetime, timedelta

from riseml.base.errors import EngineError, RisemlError
from riseml.base.names import HostName
from riseml.executors.base import Executor
from riseml.model import HostObservation

Report = Callable[[HostName, RisemlError], None]
Clock = Callable[[], float]
"""Seconds that never go back, and that do not count while this machine sleeps."""

_JUMP = timedelta(seconds=2)  # if the two clocks differ by more, one was set, or the machine slept

log = logging.getLogger(__name__)


class HostPool:
    """The hosts, and the last observation of each.

    Args:
        executors: one for each host.
        patience: seconds that `observe_hosts` waits for answers.
        report: called once when a host stops answering.
        clock: measures how long a host has been silent.

    Example:
        >>> pool = HostPool((executor,), 2.0, lambda host, error: log.warning("%s: %s", host, error.message))
        >>> pool.observe_hosts(frozenset(), now)
        {'gpu1': HostSeen(...)}
    """

    def __init__(
        self, executors: tuple[Executor, ...], patience: float, report: Report, clock: Clock = time.monotonic
    ) -> None:
        self.executors: Mapping[HostName, Executor] = {}
        self._patience = patience
        self._report = report
        self._clock = clock
        self._watches: Mapping[HostName, _HostWatch] = {}
        self.replace_executors(executors)

    def replace_executors(self, executors: tuple[Executor, ...]) -> None:
        """Use these executors from now on. An executor that stays keeps its last observation."""
        watches = {watch.executor: watch for watch in self._watches.values()}
        self._watches = {
            executor.name: watches.get(executor) or _HostWatch(executor, self._report, self._clock)
            for executor in executors
        }
        self.executors = {executor.name: executor for executor in executors}

    def observe_hosts(self, references: frozenset[str], now: datetime) -> dict[HostName, HostObservation]:
        """Return an observation of every host that has ever answered.

        A host that does not answer in time has its last observation, with `silent_since` set.

        Args:
            references: the environments to look for on each host.
            now: the time of this pass.
        """
        pending = [watch.ask_host(references) for watch in self._watches.values()]
        wait([future for future, silent in pending if not silent], timeout=self._patience)
        answers = {name: watch.collect_answer(now) for name, watch in self._watches.items()}
        return {name: host for name, host in answers.items() if host is not None}

    def list_late(self) -> frozenset[HostName]:
        """Return the hosts whose pending observation began in an earlier call of `observe_hosts`: their next answer may
        not show later actions.
        """
        return frozenset(name for name, watch in self._watches.items() if watch.is_late)

    def has_usable_host(self) -> bool:
        """Return True when a host answers, or has answered before and is only slow, without a known problem."""
        return any(
            watch.observation is not None and (watch.observation.silent_since is None or watch.problem is None)
            for watch in self._watches.values()
        )

    def list_last_seen(self) -> dict[HostName, HostObservation]:
        """Return the last observation of every host that has ever answered."""
        observations = {name: watch.observation for name, watch in self._watches.items()}
        return {name: host for name, host in observations.items() if host is not None}

    def list_unseen(self) -> dict[HostName, datetime]:
        """Return the hosts that have never answered, each with the time of the first pass that asked it."""
        times = {name: watch.unseen_since for name, watch in self._watches.items()}
        return {name: since for name, since in times.items() if since is not None}

    def list_problems(self) -> dict[HostName, RisemlError]:
        """Return why each silent host does not answer."""
        problems = {name: watch.problem for name, watch in self._watches.items()}
        return {name: problem for name, problem in problems.items() if problem is not None}


class _HostWatch:
    """One host with at most one pending observation."""

    def __init__(self, executor: Executor, report: Report, clock: Clock) -> None:
        self.executor = executor
        self.observation: HostObservation | None = None  # None: it has never answered
        self.problem: RisemlError | None = None  # why it does not answer
        self._report = report
        self._clock = clock
        self._worker = ThreadPoolExecutor(1, thread_name_prefix=f"observe-{executor.name}")
        self._pending: Future[HostObservation] | None = None
        self._silent_since: datetime | None = None  # by the time of day
        self._silent_at = 0.0  # the same moment by the clock

    @property
    def is_late(self) -> bool:
        """True when the next answer belongs to an earlier call."""
        return self._pending is not None

    @property
    def unseen_since(self) -> datetime | None:
        """Since when a host that has never answered is asked; None: it has answered."""
        return None if self.observation is not None else self._silent_since

    def ask_host(self, references: frozenset[str]) -> tuple[Future[HostObservation], bool]:
        """Return the pending observation, and whether the host is silent: then the caller does not wait."""
        if self._pending is None:
            self._pending = self._worker.submit(self.executor.observe, references)
        return self._pending, self._silent_since is not None and self.observation is not None

    def collect_answer(self, now: datetime) -> HostObservation | None:
        """Return the newest observation: the answer if it has arrived, else the last one."""
        if self._pending is None or not self._pending.done():
            self._note_silence(now)
        else:
            problem = self._take_answer(self._pending)
            self._pending = None
            if problem is None:
                self._silent_since = self.problem = None
            else:
                if self.problem is None:
                    self._report(self.executor.name, problem)
                self.problem = problem
                self._note_silence(now)
        if self.observation is not None:
            self.observation = replace(self.observation, silent_since=self._silent_since)
        return self.observation

    def _take_answer(self, answer: Future[HostObservation]) -> RisemlError | None:
        """Store the answer, or return its problem; any exception is a problem of this host alone."""
        try:
            self.observation = answer.result()
        except RisemlError as error:
            return error
        except Exception as error:
            log.exception("the answer of host %s cannot be read", self.executor.name)
            return EngineError(f"its answer cannot be read: {error!r}", "see the server's log")
        return None

    def _note_silence(self, now: datetime) -> None:
        """Remember since when the host has been silent.

        Time in which this machine sleeps does not count against the host, nor does a time of day that was set.
        """
        if self._silent_since is None:
            self._silent_since = now
            self._silent_at = self._clock()
        silent = timedelta(seconds=self._clock() - self._silent_at)
        if abs(now - self._silent_since - silent) > _JUMP:
            self._silent_since = now - silent
