"""What is free on each host: cores, MiB, GPU device ids.

Computed from the records of the jobs that hold the rest, never from a count. Only this module subtracts from what is
free.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from riseml.base.names import HostName
from riseml.base.records import dataclass
from riseml.base.states import PLACED, JobDuty
from riseml.model import Capacity, Experiment, HostObservation, Job
from riseml.spec.config.types import Resources

SLACK = 1e-6
"""Cores. Sums of fractions such as 0.1 are not exact; a job that lacks no more than this fits."""

_ANY_NUMBER = 1_000_000


@dataclass(frozen=True, slots=True)
class FreeResources:
    """What is free on one host."""

    cpus: float  # cores
    mem: int  # MiB
    gpus: tuple[str, ...]  # device ids

    def holds(self, need: Resources) -> bool:
        """Return True when a job with this need fits, whatever its labels are."""
        return need.cpus <= self.cpus + SLACK and need.mem <= self.mem and need.gpus <= len(self.gpus)

    def count_fits(self, need: Resources, most: int = _ANY_NUMBER) -> int:
        """Return how many jobs with this need fit, `most` at most."""
        if need.gpus > len(self.gpus) or need.mem > self.mem:
            return 0
        if need.cpus > 0:
            most = min(most, int((self.cpus + SLACK) / need.cpus))
        if need.mem > 0:
            most = min(most, self.mem // need.mem)
        if need.gpus > 0:
            most = min(most, len(self.gpus) // need.gpus)
        return max(0, most) if self.cpus > -SLACK and self.mem >= 0 else 0

    def without(self, need: Resources, count: int = 1) -> FreeResources:
        """Return what is left after `count` jobs with this need; they take the first devices."""
        return FreeResources(self.cpus - need.cpus * count, self.mem - need.mem * count, self.gpus[need.gpus * count :])

    def without_jobs(self, jobs: Iterable[Job]) -> FreeResources:
        """Return what is left after these jobs, with exactly the devices that they hold."""
        return free_after(self, jobs)


FreeByHost = Mapping[HostName, FreeResources]


def free_after(whole: Capacity | FreeResources, jobs: Iterable[Job]) -> FreeResources:
    """Return what is left of a host, or of its free resources, after these jobs."""
    cpus = whole.cpus
    mem = whole.mem
    devices = set[str]()
    for job in jobs:
        cpus -= job.resources.cpus
        mem -= job.resources.mem
        devices.update(job.gpus)
    gpus = tuple(gpu for gpu in whole.gpus if gpu not in devices) if devices else whole.gpus
    return FreeResources(cpus, mem, gpus)


def find_free_resources(
    experiments: Iterable[Experiment], hosts: Mapping[HostName, HostObservation]
) -> dict[HostName, FreeResources]:
    """Return what is free on every host, by the name of the host."""
    jobs = find_held_jobs(experiments)
    return {name: free_after(host.capacity, jobs.get(name, [])) for name, host in sorted(hosts.items())}


def find_held_jobs(experiments: Iterable[Experiment]) -> dict[HostName, list[Job]]:
    """Return the jobs that hold resources, by the name of their host."""
    jobs: dict[HostName, list[Job]] = {}
    for experiment in experiments:
        if experiment.placed_at is None:
            continue
        for job in experiment.jobs:
            if job.host is not None and job.state in PLACED and job.part is not JobDuty.PREPARES:
                jobs.setdefault(job.host, []).append(job)
    return jobs
