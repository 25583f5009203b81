"""Many hosts: one worker and one deadline each, so that a stuck host delays nobody but itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import datetime

from riseml.errors import RisemlError
from riseml.executors.base import Executor
from riseml.model import Capacity, HostSeen
from riseml.names import HostName

Report = Callable[[HostName, RisemlError], None]


class Pool:
    """The hosts, and what was last seen of each.

    Args:
        executors: one for each host.
        patience: seconds that a pass waits for the answers.
        report: told of every host that fails to answer.
    """

    def __init__(self, executors: tuple[Executor, ...], patience: float, report: Report) -> None:
        self.executors: Mapping[HostName, Executor] = {}
        self._patience = patience
        self._report = report
        self._watches: Mapping[HostName, _Watch] = {}
        self.replace(executors)

    def replace(self, executors: tuple[Executor, ...]) -> None:
        """Use these from now on. What was seen of a host whose executor stays is kept."""
        watches = {watch.executor: watch for watch in self._watches.values()}
        self._watches = {one.name: watches.get(one) or _Watch(one, self._report) for one in executors}
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

    def __init__(self, executor: Executor, report: Report) -> None:
        self.executor = executor
        self.seen: HostSeen | None = None
        self.trouble: RisemlError | None = None
        self._report = report
        self._worker = ThreadPoolExecutor(1, thread_name_prefix=f"observe-{executor.name}")
        self._question: Future[HostSeen] | None = None
        self._silent_since: datetime | None = None

    def ask(self, references: frozenset[str]) -> tuple[Future[HostSeen], bool]:
        """The question under way, and whether the host is known to be silent (nobody waits for it then)."""
        if self._question is None:
            self._question = self._worker.submit(self.executor.observe, references)
        return self._question, self._silent_since is not None and self.seen is not None

    def collect(self, now: datetime) -> HostSeen | None:
        """What is known now."""
        if self._question is not None and self._question.done():
            try:
                self.seen = self._question.result()
                self._silent_since = self.trouble = None
            except RisemlError as error:
                if self.trouble is None:
                    self._report(self.executor.name, error)
                self._silent_since, self.trouble = self._silent_since or now, error
            self._question = None
        else:
            self._silent_since = self._silent_since or now
        if self.seen is not None:
            self.seen = replace(self.seen, silent_since=self._silent_since)
        return self.seen
