"""Keep samples of every running job, also while no user watches: one thread for each host reads the jobs that are due.

A job is read every ten seconds, and more often in its first seconds, so that short jobs have samples, too. The first
sample comes a second after the start, from two readings; a job that ends before the first of them is not read. One
reading is one request and costs the engine 5.6 ms; a stream for each container would cost it 2.5 ms every second. An
engine measures once a second, all requested containers together, and so answers up to a second later. Therefore several
jobs are read in parallel; when there are more jobs than that allows, each has fewer samples. While a user watches a
job, the samples of the watcher (one a second) are kept instead.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field

from riseml.base.errors import RisemlError
from riseml.base.names import HostName
from riseml.base.records import dataclass
from riseml.base.states import State
from riseml.executors.capabilities import UseMeter
from riseml.executors.pool import HostPool
from riseml.model import JobKey, Sample, World
from riseml.store.samples.sample_store import SampleStore

INTERVAL = 10.0  # seconds between two readings of a job
_AT_ONCE = 16  # jobs of a host that are read at the same time
_BEGIN = 0.3  # seconds until the first reading of a job
_FIRST = 1.0  # seconds until the second one; each pause after it is twice the one before

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _SamplingSchedule:
    """When a job is read next. Only the thread of its host uses it, except `watched_at`."""

    due: float  # monotonic seconds
    pause: float = _FIRST - _BEGIN  # seconds until the reading after that
    meter: UseMeter | None = None
    watched_at: float = field(default=-INTERVAL)  # monotonic seconds: when the last sample of a watcher came


class SampleRecorder:
    """Samples running jobs, and stores the samples.

    Args:
        pool: the hosts that are in force.
        store: where samples are kept.
        interval: seconds between two readings of a job.
    """

    def __init__(self, pool: HostPool, store: SampleStore, interval: float = INTERVAL) -> None:
        self._pool = pool
        self.store = store
        self._interval = interval
        self._hosts: dict[HostName, _HostReader] = {}
        self._last: dict[JobKey, Sample] = {}  # last samples of the jobs that run
        self._has_failed = False  # the last sample could not be written

    def watch_jobs(self, world: World) -> None:
        """From now on read exactly the running jobs of this world. Returns at once."""
        keys_by_host: dict[HostName, set[JobKey]] = {}
        for experiment in world.experiments:
            for job in experiment.gang:
                if job.state is State.RUNNING and job.host is not None:
                    keys_by_host.setdefault(job.host, set()).add(experiment.key_of(job))
        running = {key for keys in keys_by_host.values() for key in keys}
        for key in [key for key in list(self._last) if key not in running]:
            self._last.pop(key, None)
        for host in self._hosts.keys() - keys_by_host.keys():
            self._hosts.pop(host).stop()
        for host, keys in keys_by_host.items():
            if host not in self._hosts:
                self._hosts[host] = _HostReader(host, self._pool, self, self._interval)
                self._hosts[host].start()
            self._hosts[host].set_jobs(keys)

    def find_last(self, key: JobKey) -> Sample | None:
        """Return the last sample of a job that runs; None: there is none yet."""
        return self._last.get(key)

    def note_watched(self, key: JobKey, sample: Sample) -> None:
        """Store a sample that a watcher has read; the job needs no other reading meanwhile."""
        for reader in list(self._hosts.values()):
            reader.note_watched(key)
        self.keep(key, sample)

    def keep(self, key: JobKey, sample: Sample) -> None:
        """Store a sample. A sample that cannot be written is lost; the server logs the first failure."""
        self._last[key] = sample
        try:
            self.store.add_sample(key, sample)
        except OSError as error:
            if not self._has_failed:
                log.warning("samples of jobs cannot be kept: %s", error)
            self._has_failed = True
        else:
            self._has_failed = False

    def close_experiment(self, experiment: int) -> None:
        """Finish the files of an experiment that is closed."""
        try:
            self.store.close_experiment(experiment)
        except OSError as error:
            log.warning("the samples of experiment %d are not finished: %s", experiment, error)


class _HostReader(threading.Thread):
    """Reads the jobs of one host, each when it is due."""

    def __init__(self, host: HostName, pool: HostPool, recorder: SampleRecorder, interval: float) -> None:
        super().__init__(name=f"samples-{host}", daemon=True)
        self._host = host
        self._pool = pool
        self._recorder = recorder
        self._interval = interval
        self._turns: Mapping[JobKey, _SamplingSchedule] = {}  # replaced, never changed
        self._stopping = threading.Event()
        self._news = threading.Event()  # the jobs have changed, or the thread must end
        self._has_failed = False  # a reading failed inside riseml, and the error was logged

    def set_jobs(self, keys: set[JobKey]) -> None:
        """Read exactly these jobs from now on."""
        if keys != self._turns.keys():
            begin = time.monotonic() + min(_BEGIN, self._interval)
            self._turns = {key: self._turns.get(key) or _SamplingSchedule(begin) for key in keys}
            self._news.set()

    def note_watched(self, key: JobKey) -> None:
        """Leave out the next readings of a job: a watcher reads it."""
        turn = self._turns.get(key)
        if turn is not None:
            turn.watched_at = time.monotonic()

    def stop(self) -> None:
        """End after the present reading."""
        self._stopping.set()
        self._news.set()

    def run(self) -> None:
        with ThreadPoolExecutor(_AT_ONCE, f"samples-{self._host}") as workers:
            self._read_until_stopped(workers)

    def _read_until_stopped(self, workers: ThreadPoolExecutor) -> None:
        while not self._stopping.is_set():
            self._news.clear()
            turns = [(key, turn) for key, turn in self._turns.items() if turn.due <= time.monotonic()]
            if len(turns) == 1:
                self._take_turn(*turns[0])
            else:
                list(workers.map(lambda pair: self._take_turn(*pair), turns))
            due = min((turn.due for turn in self._turns.values()), default=time.monotonic() + self._interval)
            self._news.wait(max(0.0, due - time.monotonic()))

    def _take_turn(self, key: JobKey, turn: _SamplingSchedule) -> None:
        if self._stopping.is_set():
            return
        if time.monotonic() - turn.watched_at < self._interval:
            turn.meter = None
            turn.due = time.monotonic() + self._interval
            return
        try:
            sample = self._measure_job(key, turn)
            if sample is not None:
                self._recorder.keep(key, sample)
        except RisemlError as error:
            log.debug("no sample of %s: %s", key, error.message)
            turn.meter = None
        except Exception:
            if not self._has_failed:  # log once for each host: the next readings may fail in the same way
                log.exception("no sample of %s", key)
            self._has_failed = True
            turn.meter = None
        turn.due = time.monotonic() + min(turn.pause, self._interval)
        turn.pause = min(2 * max(turn.pause, _FIRST), self._interval)

    def _measure_job(self, key: JobKey, turn: _SamplingSchedule) -> Sample | None:
        if turn.meter is None:
            executor = self._pool.executors.get(self._host)
            use = None if executor is None else executor.capabilities.use
            if use is None:
                return None
            turn.meter = use.open_meter(key)
        return turn.meter.read_use()
