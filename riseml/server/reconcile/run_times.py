"""How long jobs have run by a monotonic clock, where their hosts cannot say it: an engine knows the time of day
alone, and the time of day may be set while a job runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from riseml.base.names import HostName
from riseml.base.states import State
from riseml.model import ContainerObservation, HostObservation, Job, JobKey, World

_LATE = 5.0
"""The most seconds by which the times of a host may exceed what was measured here, without that its clock was set."""


class _Sighting(NamedTuple):
    """The first pass that saw a job run, whose start was known."""

    at: datetime
    uptime: float  # of the same moment
    ran: float  # seconds that the job had run then, by its record


class RunTimes:
    """Measures the jobs that run while this server is there.

    Args:
        read_uptime: returns seconds, by a monotonic clock.
    """

    def __init__(self, read_uptime: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME)) -> None:
        self._read_uptime = read_uptime
        self._sightings: dict[JobKey, _Sighting] = {}

    def measure(
        self, world: World, hosts: Mapping[HostName, HostObservation], moment: datetime
    ) -> dict[HostName, HostObservation]:
        """Return the hosts with the seconds that each job has run. A job that has ended gets them when the times of its
        host cannot be right."""
        jobs = {
            experiment.key_of(job): job
            for experiment in world.experiments
            for job in experiment.gang
            if job.state is State.RUNNING
        }
        self._sightings = {key: sighting for key, sighting in self._sightings.items() if key in jobs}
        uptime = self._read_uptime()
        return {
            name: replace(
                host,
                containers={
                    key: self._measure_job(container, jobs.get(key), moment, uptime)
                    for key, container in host.containers.items()
                },
            )
            for name, host in hosts.items()
        }

    def _measure_job(
        self, container: ContainerObservation, job: Job | None, moment: datetime, uptime: float
    ) -> ContainerObservation:
        if job is None or job.begun_at is None or container.ran is not None or container.late:
            return container
        if container.running:
            ran = max(0.0, (moment - job.begun_at).total_seconds())
            first = self._sightings.setdefault(container.key, _Sighting(moment, uptime, ran))
            return replace(container, ran=first.ran + uptime - first.uptime)
        sighting = self._sightings.get(container.key)
        if sighting is None or container.started_at is None or container.finished_at is None:
            return container
        lasted = (container.finished_at - container.started_at).total_seconds()
        most = sighting.ran + uptime - sighting.uptime + _LATE
        if 0 <= lasted <= most:
            return container
        set_by = (moment - sighting.at).total_seconds() - (uptime - sighting.uptime)
        mended = lasted - set_by
        return replace(container, ran=mended if 0 <= mended <= most else most - _LATE)
