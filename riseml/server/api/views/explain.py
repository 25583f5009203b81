"""Why an experiment waits, or runs where it runs, in the shape of the HTTP API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import itemgetter

from riseml import wire
from riseml.base.errors import RisemlError
from riseml.base.names import HostName
from riseml.control.explain import BlockerKind, explain_experiment, explain_queue
from riseml.control.observation import Observation
from riseml.control.visible_names import name_for, name_seen
from riseml.model import Experiment, World
from riseml.server.api.views.record_views import show_time
from riseml.server.data.disk_reclaimer import DiskState
from riseml.server.reconcile.activities import Activity


def show_explanation(
    world: World,
    observation: Observation,
    experiment: Experiment,
    hosts_of_pool: Iterable[HostName],
    troubles: Mapping[HostName, RisemlError],
) -> wire.ExplanationView:
    """Return the answer of `control.explain` with the hosts that have never answered, and with why hosts are silent.

    Args:
        world: every open experiment.
        observation: the last one.
        experiment: the one to explain.
        hosts_of_pool: every host, whether it has ever answered or not.
        troubles: why each silent host does not answer.
    """
    explanation = explain_experiment(world, observation, experiment)
    explanation = {**explanation, "id": name_seen(world.reader, experiment)}
    if explanation["phase"] != "waits":
        return explanation
    unheard = sorted(set(hosts_of_pool) - observation.hosts.keys())
    hosts = [_add_trouble(host, observation, troubles) for host in explanation["hosts"]]
    hosts += [_make_unheard_host(name, troubles) for name in unheard]
    return {**_soften_never(explanation, unheard), "hosts": sorted(hosts, key=itemgetter("host"))}


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
        world: every open experiment, and who reads the answer: it leaves out what they do not see.
        observation: the last one.
        hosts_of_pool: every host, whether it has ever answered or not.
        most: experiments that are explained.
    """
    unheard = sorted(set(hosts_of_pool) - observation.hosts.keys())
    waiting: list[wire.QueuedView] = []
    length = 0
    for position, (experiment, explanation) in enumerate(explain_queue(world, observation, most), 1):
        length = 0 if explanation["queue"] is None else explanation["queue"]["length"]
        name = name_for(world.reader, experiment)
        if name is None:
            continue
        waiting.append(
            {
                "position": position,
                "id": name,
                "project": experiment.project,
                "created_at": show_time(experiment.created_at) or "",
                "summary": _soften_never(explanation, unheard)["summary"],
            }
        )
    return {"length": length, "waiting": waiting}


def _soften_never(explanation: wire.ExplanationView, unheard: list[HostName]) -> wire.ExplanationView:
    """Replace `never` by a wait for hosts that have never answered, if there are any: one may have the room."""
    summary = explanation["summary"]
    blockers: list[wire.BlockerView] = []
    for blocker in explanation["blockers"]:
        if unheard and blocker["block"] == BlockerKind.NEVER:
            text = f"it waits for {', '.join(unheard)}: no other host could ever hold it"
            summary = summary.replace(blocker["text"], text)
            blockers.append({**blocker, "block": BlockerKind.NO_HOST.value, "text": text})
        else:
            blockers.append(blocker)
    return {**explanation, "summary": summary, "blockers": blockers}


def _make_unheard_host(name: HostName, troubles: Mapping[HostName, RisemlError]) -> wire.HostFitView:
    why = f": {troubles[name].message}" if name in troubles else ""
    return {"host": name, "obstacle": "silent", "text": f"has never answered{why}", "jobs": []}


def _add_trouble(
    host: wire.HostFitView, observation: Observation, troubles: Mapping[HostName, RisemlError]
) -> wire.HostFitView:
    """Add why a host is silent, and whether it is drained too."""
    if host["obstacle"] not in ("silent", "lost"):
        return host
    name = HostName(host["host"])
    drained = "" if observation.hosts[name].taking else ", and is drained"
    why = f": {troubles[name].message}" if name in troubles else ""
    return {**host, "text": f"{host['text']}{drained}{why}"}


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
