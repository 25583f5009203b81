"""Hand gangs over to hosts that have a queue of their own: such a host decides where and when a gang runs.

riseml does not count resources there: it hands a gang over when its turn comes, however long that queue is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from riseml.base.names import HostName, JobName
from riseml.base.states import Network, Reason, State
from riseml.control.observation import Observation
from riseml.control.placement.candidates import HostExclusion
from riseml.control.placement.gpu_models import wants_models
from riseml.model import Experiment, HostObservation, NodeKind, OwnQueue
from riseml.spec.config.types import Resources


def list_clusters(observation: Observation, exclusions: Mapping[HostName, HostExclusion]) -> tuple[HostName, ...]:
    """Return the hosts with a queue of their own that take gangs now, in the order of their names."""
    return tuple(
        sorted(
            name
            for name, host in observation.hosts.items()
            if host.queue is not None and not host.queue.trouble and name not in exclusions
        )
    )


def find_cluster(experiment: Experiment, observation: Observation, clusters: Iterable[HostName]) -> HostName | None:
    """Return the first of these hosts that takes the gang; None when none does."""
    needs = {job.name: job.resources for job in experiment.gang}
    for name in clusters:
        host = observation.hosts[name]
        if host.queue is not None and not any(_find_reasons(needs, host, host.queue)):
            return name
    return None


def hand_over(waiting: Experiment, host: HostName, now: datetime) -> Experiment:
    """Return the experiment with its whole gang on a host; the host reports later where each job runs."""
    gang = {job.name for job in waiting.gang}
    jobs = tuple(
        replace(job, state=State.STARTING, reason=Reason.PLACED, host=host) if job.name in gang else job
        for job in waiting.jobs
    )
    return replace(
        waiting,
        jobs=jobs,
        network=Network.HOST,
        network_host=None,
        subnet=None,
        placed_at=now,
        state=State.STARTING,
        reason=Reason.PLACED,
        message="",
    )


def describe_cluster_refusal(needs: Mapping[JobName, Resources], observation: Observation) -> tuple[str, ...]:
    """Return why no host with its own queue could ever run a gang; empty when one could, or when there is no such
    host."""
    problems: list[str] = []
    for name, host in sorted(observation.hosts.items()):
        if host.queue is None:
            continue
        reasons = [f"{name}: {reason}" for reason in _find_reasons(needs, host, host.queue)]
        if not reasons:
            return ()
        problems += reasons
    return tuple(problems)


def takes_whole_gangs(host: HostName | None, observation: Observation) -> bool:
    """Return True when a host has a queue of its own, as this pass saw it."""
    cluster = None if host is None else observation.hosts.get(host)
    return cluster is not None and cluster.queue is not None


def _find_reasons(needs: Mapping[JobName, Resources], host: HostObservation, queue: OwnQueue) -> Iterator[str]:
    for job, need in needs.items():
        if wants_models(need):
            yield f"{job} asks for a model of GPU, which `constraint` of pool.yml chooses on a cluster"
        lacking = [f"{name}={value}" for name, value in need.labels if host.labels.get(name) != value]
        if lacking:
            yield f"{job} asks for the labels {', '.join(lacking)}, and a cluster has none"
        if not any(_holds(node, need) for node in queue.nodes):
            size = f"{need.cpus:g} cpus, {need.mem} MiB and {need.gpus} gpus"
            yield f"{job} needs {size} on one node, and {_describe_largest(queue)}"
    for resource, unit in (("cpus", "cpus"), ("mem", "MiB"), ("gpus", "gpus")):
        total = sum(getattr(node, resource) * node.count for node in queue.nodes)
        needed = sum(getattr(need, resource) for need in needs.values())
        if needed > total:
            yield f"the {len(needs)} jobs together need {needed:g} {unit}, and all nodes together have {total}"


def _holds(node: NodeKind, need: Resources) -> bool:
    return need.cpus <= node.cpus and need.mem <= node.mem and need.gpus <= node.gpus


def _describe_largest(queue: OwnQueue) -> str:
    if not queue.nodes:
        return "the cluster has no nodes"
    kinds = ", ".join(f"{node.cpus} cpus, {node.mem} MiB, {node.gpus} gpus" for node in queue.nodes[:3])
    return f"its nodes have {kinds}"
