"""Samples on demand: while a client asks for samples, one thread for each job reads the statistics of its host."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import field

from riseml.base.errors import RisemlError
from riseml.base.names import CanonicalId
from riseml.base.records import dataclass
from riseml.base.states import State
from riseml.executors.pool import HostPool
from riseml.model import Experiment, Job, JobKey, Sample

LEASE = 30.0  # seconds of sampling after the last request
_FIRST = 4.0  # seconds that the first request waits: an engine measures once a second and needs two readings

log = logging.getLogger(__name__)

JobSample = tuple[Experiment, Job, Sample | None]
"""A job with its last sample; None when there is none."""


@dataclass(slots=True)
class _Sampler:
    """The samples of one job."""

    # set by the first sample, or when no sample will come
    first: threading.Event = field(default_factory=threading.Event)
    last: Sample | None = None
    requests: int = 0  # for this job so far


class Monitor:
    """Samples the jobs that clients watch.

    Args:
        pool: the hosts that are in force.
        note: called with each sample.
    """

    def __init__(self, pool: HostPool, note: Callable[[JobKey, Sample], None]) -> None:
        self._pool = pool
        self._note = note
        self._lock = threading.Lock()
        self._samplers: dict[JobKey, _Sampler] = {}

    def sample_jobs(self, experiments: list[Experiment], canonical_id: CanonicalId | None) -> list[JobSample]:
        """Return one sample for each job, None for a job without one. Wait for the first samples of all jobs
        together."""
        pairs = [
            (experiment, job)
            for experiment in experiments
            for job in experiment.gang
            if canonical_id is None or canonical_id.names(job.name)
        ]
        samplers = {
            (experiment.id, job.name): self._request_sampler(experiment, job)
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

    def _request_sampler(self, experiment: Experiment, job: Job) -> _Sampler:
        key = experiment.key_of(job)
        with self._lock:
            sampler = self._samplers.get(key)
            if sampler is None:
                sampler = self._samplers[key] = _Sampler()
                threading.Thread(
                    target=self._sample_until_idle, args=(key, job, sampler), name=f"stats-{key}", daemon=True
                ).start()
            sampler.requests += 1
        return sampler

    def _sample_until_idle(self, key: JobKey, job: Job, sampler: _Sampler) -> None:
        """Sample until no request came for LEASE seconds, or until the job ends."""
        served = 0
        quiet = 0
        try:
            executor = self._pool.executors.get(job.host) if job.host is not None else None
            for sample in executor.sample(key) if executor is not None else ():
                sampler.last = sample
                sampler.first.set()
                self._note(key, sample)
                quiet = 0 if sampler.requests != served else quiet + 1
                served = sampler.requests
                if quiet > LEASE:
                    return
        except RisemlError as error:
            log.debug("no statistics of %s: %s", key, error.message)
        finally:
            sampler.first.set()
            with self._lock:
                self._samplers.pop(key, None)
