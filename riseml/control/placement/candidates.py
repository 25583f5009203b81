"""The hosts that may get new jobs, and why the others may not."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping

from riseml.base.names import HostName
from riseml.base.records import dataclass
from riseml.base.states import TERMINAL, Network
from riseml.control.actions import StartJob
from riseml.control.observation import Observation
from riseml.control.placement.gpu_models import GpuModel, has_wanted_gpus, list_models
from riseml.model import Experiment, HostObservation, Job, JobKey
from riseml.spec.config.types import Labels, Resources


class HostExclusion(enum.Enum):
    """Why a host gets no new jobs."""

    SILENT = "silent"  # does not answer; may come back
    LOST = "lost"  # has not answered for longer than `lost_after`
    DRAINED = "drained"  # a user took it out of use
    STALE = "stale"  # still runs jobs of earlier attempts, which the server removes


@dataclass(frozen=True, slots=True)
class CandidateHost:
    """A host that may get new jobs: everything that placement needs to know except its free resources."""

    labels: Mapping[str, str]
    gpus: int  # how many devices the host has, free or not
    models: tuple[GpuModel, ...]  # models of these devices; empty: no devices, or models not known
    link: str | None  # a gang may spread over hosts of one link; None: a gang must be on this host as a whole

    def has_labels(self, labels: Labels) -> bool:
        """Return True when the host has all of these labels."""
        return not labels or all(self.labels.get(name) == value for name, value in labels)

    def accepts(self, need: Resources) -> bool:
        """Return True when the host is of the kind that a job with this need wants, whatever is free on it."""
        if need.labels and not self.has_labels(need.labels):
            return False
        return not need.gpus or has_wanted_gpus(self.models, need)


def find_candidates(
    observation: Observation, excluded: Iterable[HostName] = (), unreachable: Iterable[HostName] = ()
) -> dict[HostName, CandidateHost]:
    """Return the candidate hosts in the order of their names, without the hosts that place jobs themselves.

    Args:
        observation: what the pass saw.
        excluded: hosts that may not get new jobs.
        unreachable: hosts that cannot create the networks of their swarm at the moment.
    """
    left_out = frozenset(excluded)
    no_managers = frozenset(unreachable)
    swarms = frozenset(
        host.swarm for name, host in observation.hosts.items() if host.manager and name not in no_managers
    )
    swarms -= {""}
    return {
        name: CandidateHost(
            host.labels, len(host.capacity.gpus), list_models(host), _find_link(host, observation, swarms)
        )
        for name, host in sorted(observation.hosts.items())
        if name not in left_out and host.queue is None
    }


def find_exclusions(experiments: Mapping[int, Experiment], observation: Observation) -> dict[HostName, HostExclusion]:
    """Return the hosts that may not get new jobs, each with its reason.

    Args:
        experiments: the open experiments by the id of their record.
        observation: what the pass saw.
    """
    starting = frozenset(
        action.host
        for action in observation.busy
        if isinstance(action, StartJob) and not _is_expected(action.key, action.host, experiments)
    )
    exclusions: dict[HostName, HostExclusion] = {}
    for name, host in observation.hosts.items():
        if host.silent_since is not None:
            exclusions[name] = HostExclusion.LOST if observation.is_lost(host) else HostExclusion.SILENT
        elif not host.taking:
            exclusions[name] = HostExclusion.DRAINED
        elif host.queue is None and (
            name in starting
            or any(
                container.running and not _is_expected(key, name, experiments)
                for key, container in host.containers.items()
            )
        ):
            exclusions[name] = HostExclusion.STALE
    return exclusions


def find_record(experiment: Experiment, key: JobKey, host: HostName) -> Job | None:
    """Return the record of a container; None for a container of an earlier attempt, or on another host than its
    record says.
    """
    for job in experiment.jobs:
        if job.name == key.job and job.attempt == key.attempt and job.host == host:
            return job
    return None


def _find_link(host: HostObservation, observation: Observation, swarms: frozenset[str]) -> str | None:
    if not observation.shared_output or not host.isolated:
        return None
    if observation.network is Network.OVERLAY:
        return host.swarm if host.swarm in swarms else None
    return "address" if observation.network is Network.HOST and host.address else None


def _is_expected(key: JobKey, host: HostName, experiments: Mapping[int, Experiment]) -> bool:
    """Return True when the record of this container says that it runs, or is to run, on this host."""
    experiment = experiments.get(key.experiment)
    job = None if experiment is None else find_record(experiment, key, host)
    return job is not None and job.state not in TERMINAL
