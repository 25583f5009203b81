"""Measure for how long the jobs of experiments with `idle_timeout` have printed nothing and used no processor.

One thread for each such job reads its lines and its processor time at intervals. A job counts as active whenever its
host cannot tell, and again when the server starts: an experiment never ends without a measurement.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping

from riseml.base.errors import RisemlError
from riseml.base.names import HostName
from riseml.base.states import State
from riseml.executors.pool import HostPool
from riseml.model import JobKey, World

_ACTIVE = 0.01  # cores; a waiting process also uses some time, for example to send a keepalive
_SHORTEST = 0.5  # seconds between two readings
_LONGEST = 30.0  # seconds between two readings
_READINGS = 10  # readings within one idle_timeout

log = logging.getLogger(__name__)


class IdleWatch:
    """Watches the jobs of experiments that have an `idle_timeout`.

    Args:
        pool: the hosts that are in force.
        count_lines: returns how many lines came from each job so far.

    Example:
        watch.find_quiet(world)  # {JobKey(4, "master", 1): 12.5}
    """

    def __init__(self, pool: HostPool, count_lines: Callable[[], Mapping[JobKey, int]]) -> None:
        self._pool = pool
        self._count_lines = count_lines
        self._watchers: dict[JobKey, _JobWatcher] = {}

    def find_quiet(self, world: World) -> dict[JobKey, float]:
        """Return for how many seconds each job that runs has been quiet, and watch exactly these jobs from now on."""
        watched_jobs = {
            experiment.key_of(job): (job.host, experiment.plan.policy.idle_timeout)
            for experiment in world.experiments
            if experiment.plan.policy.idle_timeout is not None
            for job in experiment.gang
            if job.state is State.RUNNING and job.host is not None
        }
        for key in self._watchers.keys() - watched_jobs.keys():
            self._watchers.pop(key).stop()
        for key, (host, limit) in watched_jobs.items():
            if key not in self._watchers:
                self._watchers[key] = self._start(key, host, limit)
        return {key: watcher.quiet for key, watcher in self._watchers.items()}

    def _start(self, key: JobKey, host: HostName, limit: float) -> _JobWatcher:
        interval = min(max(limit / _READINGS, _SHORTEST), _LONGEST)
        watcher = _JobWatcher(key, interval, lambda: self._measure(key, host), lambda: self._count_lines().get(key, 0))
        watcher.start()
        return watcher

    def _measure(self, key: JobKey, host: HostName) -> float | None:
        """Return the processor time of a job in seconds; None when its host does not report it."""
        executor = self._pool.executors.get(host)
        meters = None if executor is None else executor.capabilities.use
        if meters is None:
            return None
        try:
            return meters.measure_processor_time(key)
        except RisemlError as error:
            log.debug("no processor time of %s: %s", key, error.message)
            return None


class _JobWatcher(threading.Thread):
    """Reads one job at intervals."""

    def __init__(
        self, key: JobKey, interval: float, measure: Callable[[], float | None], count_lines: Callable[[], int]
    ) -> None:
        super().__init__(name=f"idle-{key.experiment}-{key.job}", daemon=True)
        self.quiet = 0.0  # seconds without a sign of life, as of the last reading
        self._interval = interval
        self._measure = measure
        self._count_lines = count_lines
        self._stopping = threading.Event()

    def stop(self) -> None:
        """End after the present reading."""
        self._stopping.set()

    def run(self) -> None:
        active_at = time.monotonic()
        read_at = 0.0
        used: float | None = None  # at the last reading
        lines = -1
        while not self._stopping.is_set():
            before = (used, read_at, lines)
            used = self._measure()
            read_at = time.monotonic()
            lines = self._count_lines()
            if _was_active(before, (used, read_at, lines)):
                active_at = read_at
            self.quiet = read_at - active_at
            self._stopping.wait(self._interval)


def _was_active(before: tuple[float | None, float, int], after: tuple[float | None, float, int]) -> bool:
    """Return whether a job did anything between two readings of processor time, moment and lines.

    The processor time goes back when one of several processes ends, which is a sign of life, too.
    """
    if before[0] is None or after[0] is None or after[2] != before[2]:
        return True
    used = after[0] - before[0]
    return used < 0 or used >= _ACTIVE * (after[1] - before[1])
