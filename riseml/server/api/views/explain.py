"""Why an experiment waits, or runs where it runs, in the shape of the HTTP API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from riseml import wire
from riseml.base.errors import RisemlError
from riseml.base.names import HostName, experiment_name
from riseml.control.explain import explain_experiment, explain_queue
from riseml.control.explanation import (
    BlockerKind,
    Explanation,
    ExplanationPhase,
    HostExclusion,
    HostFit,
    JobPlace,
    Shortfall,
)
from riseml.control.observation import Observation
from riseml.model import Experiment, World
from riseml.server.api.views.record_views import show_time
from riseml.server.data.disk_keeper import DiskState
from riseml.server.reconcile.activities import Activity

Names = Mapping[int, str]
"""Canonical IDs by the ids of records."""


def show_explanation(
    world: World,
    observation: Observation,
    experiment: Experiment,
    hosts_of_pool: Iterable[HostName],
    troubles: Mapping[HostName, RisemlError],
) -> wire.ExplanationView:
    """Return the answer of `control.explain` with the IDs that users know, and with the hosts that have never answered.

    Args:
        world: every open experiment.
        seen: the last observation.
        experiment: the one to explain.
        hosts_of_pool: every host, whether it has ever answered or not.
        troubles: why each silent host does not answer.
    """
    explanation = explain_experiment(world, observation, experiment)
    unheard = (
        sorted(set(hosts_of_pool) - observation.hosts.keys()) if explanation.phase is ExplanationPhase.WAITS else []
    )
    if unheard:
        explanation = _soften_never(explanation, unheard)
    hosts = [_add_trouble(host, observation, troubles) for host in explanation.hosts]
    hosts += [_make_unheard_host(name, troubles) for name in unheard]
    names = {named.id: experiment_name(named.number, named.sub) for named in (*world.experiments, experiment)}
    return {
        "id": names[explanation.experiment],
        "phase": explanation.phase.value,
        "state": explanation.state.value,
        "reason": explanation.reason.value,
        "summary": explanation.summary,
        "queue": _show_queue(explanation, names),
        "blockers": [
            {"block": blocker.kind.value, "text": blocker.text, "by": _list_names(blocker.by, names)}
            for blocker in explanation.blockers
        ],
        "hosts": [_show_host(host, names) for host in sorted(hosts, key=lambda fit: fit.host)],
        "jobs": [_show_job(job) for job in explanation.jobs],
        "activities": [],
        "network": None if explanation.network is None else explanation.network.value,
        "network_host": explanation.network_host,
    }


def describe_stuck_disks(disks: Iterable[DiskState]) -> str:
    """Return what to add to the summary of an experiment that has not started: the disks of its hosts that are full."""
    return "".join(
        f"; the disk of {' and '.join(disk.places)} is {disk.percent} % full, and nothing is left on it that no"
        " experiment needs"
        for disk in disks
    )


def show_queue(world: World, observation: Observation, hosts_of_pool: Iterable[HostName], most: int) -> wire.QueueView:
    """Return the queue, and why its first experiments wait.

    Args:
        world: every open experiment.
        seen: the last observation.
        hosts_of_pool: every host, whether it has ever answered or not.
        most: experiments that are explained.
    """
    unheard = sorted(set(hosts_of_pool) - observation.hosts.keys())
    experiments = {experiment.id: experiment for experiment in world.experiments}
    waiting: list[wire.QueuedView] = []
    length = 0
    for explanation in explain_queue(world, observation, most):
        experiment = experiments[explanation.experiment]
        length = 0 if explanation.queue is None else explanation.queue.length
        waiting.append(
            {
                "position": len(waiting) + 1,
                "id": experiment_name(experiment.number, experiment.sub),
                "project": experiment.project,
                "created_at": show_time(experiment.created_at) or "",
                "summary": (_soften_never(explanation, unheard) if unheard else explanation).summary,
            }
        )
    return {"length": length, "waiting": waiting}


def _soften_never(explanation: Explanation, unheard: list[HostName]) -> Explanation:
    """Replace `never` by a wait for hosts that have never answered: one of them may have the room."""
    summary = explanation.summary
    blockers = []
    for blocker in explanation.blockers:
        if blocker.kind is BlockerKind.NEVER:
            text = f"it waits for {', '.join(unheard)}: no other host could ever hold it"
            summary = summary.replace(blocker.text, text)
            blockers.append(replace(blocker, kind=BlockerKind.NO_HOST, text=text))
        else:
            blockers.append(blocker)
    return replace(explanation, summary=summary, blockers=tuple(blockers))


def _make_unheard_host(name: HostName, troubles: Mapping[HostName, RisemlError]) -> HostFit:
    why = f": {troubles[name].message}" if name in troubles else ""
    return HostFit(name, HostExclusion.SILENT, None, f"has never answered{why}", ())


def _add_trouble(host: HostFit, observation: Observation, troubles: Mapping[HostName, RisemlError]) -> HostFit:
    """Add why a host is silent, and whether it is drained too."""
    if host.obstacle not in (HostExclusion.SILENT, HostExclusion.LOST):
        return host
    drained = "" if observation.hosts[host.host].taking else ", and is drained"
    why = f": {troubles[host.host].message}" if host.host in troubles else ""
    return replace(host, text=f"{host.text}{drained}{why}")


def _list_names(ids: Iterable[int], names: Names) -> list[str]:
    return [names.get(identity, "?") for identity in ids]


def _show_queue(explanation: Explanation, names: Names) -> wire.QueuePlaceView | None:
    queue = explanation.queue
    if queue is None:
        return None
    return {"position": queue.position, "length": queue.length, "ahead": _list_names(queue.ahead, names)}


def _show_host(host: HostFit, names: Names) -> wire.HostFitView:
    return {
        "host": host.host,
        "obstacle": None if host.obstacle is None else host.obstacle.value,
        "text": host.text,
        "jobs": [
            {"job": fit.job, "shortages": [_show_shortage(shortage, names) for shortage in fit.shortages]}
            for fit in host.jobs
        ],
    }


def _show_shortage(shortage: Shortfall, names: Names) -> wire.ShortageView:
    return {
        "lack": shortage.lack.value,
        "needs": shortage.needs,
        "free": shortage.free,
        "total": shortage.total,
        "held_by": _list_names(shortage.held_by, names),
        "text": shortage.text,
    }


def _show_job(job: JobPlace) -> wire.JobPlaceView:
    return {
        "job": job.job,
        "state": job.state.value,
        "host": job.host,
        "node": job.node,
        "gpus": list(job.gpus),
        "address": job.address,
        "port": job.port,
        "image": job.image,
        "why": job.why,
        "alternatives": list(job.alternatives),
    }


def show_activities(activities: Iterable[Activity]) -> list[wire.ActivityView]:
    """Return the activities of hosts for an environment."""
    return [
        {
            "host": host,
            "work": activity.work.value,
            "what": activity.subject,
            "done": activity.progress,
            "total": activity.total,
        }
        for host, activity in activities
    ]
