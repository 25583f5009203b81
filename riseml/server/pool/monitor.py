"""Samples on demand: while somebody watches an experiment, one thread a job reads the engine's statistics."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field

from riseml.errors import RisemlError
from riseml.executors.pool import HostPool
from riseml.model import Experiment, Job, JobKey, Sample
from riseml.names import CanonicalId
from riseml.states import State

LEASE = 30.0  # seconds that sampling goes on after the last question
_FIRST = 4.0  # seconds that the first question waits: the engine measures once a second, and needs two readings

log = logging.getLogger(__name__)

JobSample = tuple[Experiment, Job, Sample | None]


@dataclass(slots=True)
class _Sampler:
    """What is known of one job's use."""

    first: threading.Event = field(default_factory=threading.Event)
    last: Sample | None = None
    asked: int = 0


class Monitor:
    """Every sampler."""

    def __init__(self, pool: HostPool) -> None:
        self._pool = pool
        self._lock = threading.Lock()
        self._samplers: dict[JobKey, _Sampler] = {}

    def sample(self, experiments: list[Experiment], wanted: CanonicalId | None) -> list[JobSample]:
        """Return one sample a job, None for a job without any. Wait for the first sample of each, once for all."""
        pairs = [
            (experiment, job)
            for experiment in experiments
            for job in experiment.gang
            if wanted is None or wanted.names(job.name)
        ]
        samplers = {
            (experiment.id, job.name): self._ask(experiment, job)
            for experiment, job in pairs
            if job.state is State.RUNNING
        }
        end = time.monotonic() + _FIRST
        for sampler in samplers.values():
            sampler.first.wait(max(0.0, end - time.monotonic()))
        return [
            (experiment, job, None if sampler is None else sampler.last)
            for experiment, job in pairs
            for sampler in (samplers.get((experiment.id, job.name)),)
        ]

    def _ask(self, experiment: Experiment, job: Job) -> _Sampler:
        key = experiment.key_of(job)
        with self._lock:
            sampler = self._samplers.get(key)
            if sampler is None:
                sampler = self._samplers[key] = _Sampler()
                threading.Thread(target=self._run, args=(key, job, sampler), name=f"stats-{key}", daemon=True).start()
            sampler.asked += 1
        return sampler

    def _run(self, key: JobKey, job: Job, sampler: _Sampler) -> None:
        """Sample until nobody has asked for a lease's time, or the job ends."""
        served, quiet = 0, 0
        try:
            executor = self._pool.executors.get(job.host) if job.host is not None else None
            for sample in executor.sample(key) if executor is not None else ():
                sampler.last = sample
                sampler.first.set()
                quiet = 0 if sampler.asked != served else quiet + 1
                served = sampler.asked
                if quiet > LEASE:
                    return
        except RisemlError as error:
            log.info("no statistics of %s: %s", key, error.message)
        finally:
            sampler.first.set()
            with self._lock:
                self._samplers.pop(key, None)
