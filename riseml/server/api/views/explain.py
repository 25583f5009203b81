"""Why an experiment waits, or runs where it runs, in the shape of the HTTP API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from riseml import wire
from riseml.control.explain import explain_experiment, explain_queue
from riseml.control.explanation import BlockerKind, Explanation, ExplanationPhase, HostFit, JobPlace, Obstacle, Shortage
from riseml.control.observation import Observation
from riseml.errors import RisemlError
from riseml.model import Experiment, World
from riseml.names import HostName, experiment_name
from riseml.server.api.views.record_views import show_time
from riseml.server.pool.disk_keeper import DiskState
from riseml.server.reconcile.activities import Activity

Names = Mapping[int, str]
"""Canonical IDs by the ids of records."""


def show_explanation(
    world: World,
    seen: Observation,
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
    found = explain_experiment(world, seen, experiment)
    unheard = sorted(set(hosts_of_pool) - seen.hosts.keys()) if found.phase is ExplanationPhase.WAITS else []
    if unheard:
        found = _soften_never(found, unheard)
    hosts = [_add_trouble(host, seen, troubles) for host in found.hosts]
    hosts += [_make_unheard_host(name, troubles) for name in unheard]
    names = {one.id: experiment_name(one.number, one.sub) for one in (*world.experiments, experiment)}
    return {
        "id": names[found.experiment],
        "phase": found.phase.value,
        "state": found.state.value,
        "reason": found.reason.value,
        "summary": found.summary,
        "queue": _show_queue(found, names),
        "blockers": [
            {"block": one.kind.value, "text": one.text, "by": _list_names(one.by, names)} for one in found.blockers
        ],
        "hosts": [_show_host(host, names) for host in sorted(hosts, key=lambda one: one.host)],
        "jobs": [_show_job(job) for job in found.jobs],
        "activities": [],
        "network": None if found.network is None else found.network.value,
        "network_host": found.network_host,
    }


def describe_stuck_disks(disks: Iterable[DiskState]) -> str:
    """Return what to add to the summary of an experiment that has not started: the disks of its hosts that are full."""
    return "".join(
        f"; the disk of {' and '.join(disk.places)} is {disk.percent} % full, and nothing is left on it that no"
        " experiment needs"
        for disk in disks
    )


def show_queue(world: World, seen: Observation, hosts_of_pool: Iterable[HostName], most: int) -> wire.QueueView:
    """Return the queue, and why its first experiments wait.

    Args:
        world: every open experiment.
        seen: the last observation.
        hosts_of_pool: every host, whether it has ever answered or not.
        most: experiments that are explained.
    """
    unheard = sorted(set(hosts_of_pool) - seen.hosts.keys())
    known = {one.id: one for one in world.experiments}
    shown: list[wire.QueuedView] = []
    length = 0
    for found in explain_queue(world, seen, most):
        one = known[found.experiment]
        length = 0 if found.queue is None else found.queue.length
        shown.append(
            {
                "position": len(shown) + 1,
                "id": experiment_name(one.number, one.sub),
                "project": one.project,
                "created_at": show_time(one.created_at) or "",
                "summary": (_soften_never(found, unheard) if unheard else found).summary,
            }
        )
    return {"length": length, "waiting": shown}


def _soften_never(found: Explanation, unheard: list[HostName]) -> Explanation:
    """Replace `never` by a wait for hosts that have never answered: one of them may have the room."""
    summary, blockers = found.summary, []
    for one in found.blockers:
        if one.kind is BlockerKind.NEVER:
            text = f"it waits for {', '.join(unheard)}: no other host could ever hold it"
            summary, one = summary.replace(one.text, text), replace(one, kind=BlockerKind.NO_HOST, text=text)
        blockers.append(one)
    return replace(found, summary=summary, blockers=tuple(blockers))


def _make_unheard_host(name: HostName, troubles: Mapping[HostName, RisemlError]) -> HostFit:
    why = f": {troubles[name].message}" if name in troubles else ""
    return HostFit(name, Obstacle.SILENT, None, f"has never answered{why}", ())


def _add_trouble(host: HostFit, seen: Observation, troubles: Mapping[HostName, RisemlError]) -> HostFit:
    """Add why a host is silent, and whether it is drained too."""
    if host.obstacle not in (Obstacle.SILENT, Obstacle.LOST):
        return host
    drained = "" if seen.hosts[host.host].taking else ", and is drained"
    why = f": {troubles[host.host].message}" if host.host in troubles else ""
    return replace(host, text=f"{host.text}{drained}{why}")


def _list_names(ids: Iterable[int], names: Names) -> list[str]:
    return [names.get(identity, "?") for identity in ids]


def _show_queue(found: Explanation, names: Names) -> wire.QueuePlaceView | None:
    queue = found.queue
    if queue is None:
        return None
    return {"position": queue.position, "length": queue.length, "ahead": _list_names(queue.ahead, names)}


def _show_host(host: HostFit, names: Names) -> wire.HostFitView:
    return {
        "host": host.host,
        "obstacle": None if host.obstacle is None else host.obstacle.value,
        "text": host.text,
        "jobs": [
            {"job": fit.job, "shortages": [_show_shortage(one, names) for one in fit.shortages]} for fit in host.jobs
        ],
    }


def _show_shortage(one: Shortage, names: Names) -> wire.ShortageView:
    return {
        "lack": one.lack.value,
        "needs": one.needs,
        "free": one.free,
        "total": one.total,
        "held_by": _list_names(one.held_by, names),
        "text": one.text,
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


def show_activities(found: Iterable[Activity]) -> list[wire.ActivityView]:
    """Return the activities of hosts for an environment."""
    return [
        {"host": host, "work": one.work.value, "what": one.what, "done": one.done, "total": one.total}
        for host, one in found
    ]
