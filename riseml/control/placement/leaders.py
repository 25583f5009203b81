"""Swarms without a leader: which hosts they connect, and what that holds back. Pure.

A swarm without a leader makes and removes no network. Gangs across its hosts wait for a leader; everything on one host
goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from riseml.base.names import HostName
from riseml.base.states import TERMINAL, JobDuty, Network, Reason, State
from riseml.control.actions import StartJob
from riseml.control.observation import Observation
from riseml.control.placement.connect import choose_network_host
from riseml.model import Experiment, HostObservation


def list_leaderless(hosts: Mapping[HostName, HostObservation]) -> list[HostName]:
    """Return the managers that can make no network now, in the order of their names.

    A manager that does not answer counts as soon as no other one of its swarm has a leader.
    """
    usable = {host.swarm for host in hosts.values() if _has_leader(host)}
    members = {host.swarm for host in hosts.values() if host.silent_since is None}
    return [
        name
        for name, host in sorted(hosts.items())
        if host.manager and (host.leaderless or (host.swarm in members and host.swarm not in usable))
    ]


def _has_leader(host: HostObservation) -> bool:
    return host.manager and host.silent_since is None and not host.leaderless


def describe_leaderless(observation: Observation) -> str:
    """Return which swarm has no leader, why, and what to do; empty when every swarm has one, or none is needed."""
    if observation.network is not Network.OVERLAY:
        return ""
    swarms: dict[str, dict[HostName, HostObservation]] = {}
    for name, host in sorted(observation.hosts.items()):
        if host.swarm:
            swarms.setdefault(host.swarm, {})[name] = host
    return "; ".join(filter(None, map(_describe_swarm, swarms.values())))


def _describe_swarm(hosts: Mapping[HostName, HostObservation]) -> str:
    managers = {name: host for name, host in hosts.items() if host.manager}
    is_seen = any(host.silent_since is None for host in hosts.values())
    if not managers or not is_seen or any(map(_has_leader, managers.values())):
        return ""
    silent = [name for name, host in managers.items() if host.silent_since is not None]
    subject = f"the Docker swarm of {_join(list(hosts))} has no leader"
    if silent and 2 * len(silent) < len(managers):
        return (
            f"{subject}: {_join(silent)} {_does(silent)} not answer, and the others choose another one in half a minute"
        )
    why = f"its managers {_join(list(managers))} do not reach more than half of all managers"
    if silent and len(managers) == 1:
        why = f"its manager {silent[0]} does not answer"
    elif silent:
        named = f"of its managers {_join(list(managers))} more than half must answer"
        why = f"{named}, and {_join(silent)} {_does(silent)} not"
    return (
        f"{subject}: {why}; experiments across hosts wait, those on one host run; start {_join(silent) or 'the others'}"
        " again, or make a new majority with `riseml pool recover`"
    )


def _does(names: list[HostName]) -> str:
    return "does" if len(names) == 1 else "do"


def give_back_place(experiment: Experiment, observation: Observation) -> Experiment:
    """Return an experiment whose gang waits for its network across hosts without its place, while there is no leader.

    So its hosts are free for others. None of its jobs has begun: no host has a container of it.
    """
    if experiment.network is not Network.OVERLAY or experiment.placed_at is None or experiment.state in TERMINAL:
        return experiment
    gang = experiment.gang
    waits = experiment.verdict is None and all(job.state is State.STARTING and job.ending is None for job in gang)
    if not waits or not _lacks_network(experiment, observation) or _has_begun(experiment, observation):
        return experiment
    jobs = tuple(
        job
        if job.part is JobDuty.PREPARES
        else replace(
            job, state=State.CREATED, reason=Reason.SUBMITTED, message="", host=None, address=None, port=None, gpus=()
        )
        for job in experiment.jobs
    )
    return replace(
        experiment,
        jobs=jobs,
        state=State.PENDING,
        reason=Reason.NO_LEADER,
        message=describe_leaderless(observation),
        placed_at=None,
        network_host=None,
        subnet=None,
    )


def _lacks_network(experiment: Experiment, observation: Observation) -> bool:
    """Return True when the network of a gang is not there, and no manager of its swarm can make it."""
    creator = None if experiment.network_host is None else observation.hosts.get(experiment.network_host)
    if creator is None or experiment.id in creator.networks:
        return False
    is_silent = creator.silent_since is not None and not observation.is_lost(creator)
    hosts = tuple(job.host for job in experiment.gang if job.host is not None)
    return not is_silent and choose_network_host(observation, hosts) is None


def _has_begun(experiment: Experiment, observation: Observation) -> bool:
    """Return True when a host has a container of the experiment, or is about to have one."""
    if any(key.experiment == experiment.id for host in observation.hosts.values() for key in host.containers):
        return True
    return any(isinstance(action, StartJob) and action.key.experiment == experiment.id for action in observation.busy)


def _join(names: list[HostName]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""
