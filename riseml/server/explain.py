"""Why an experiment waits, or runs where it runs, as the shape of the HTTP door."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from riseml import wire
from riseml.control.explain import explain
from riseml.control.explanation import Explanation, HostFit, JobPlace, Shortage
from riseml.control.observation import Observation
from riseml.model import Experiment, World
from riseml.names import experiment_name

Names = Mapping[int, str]
"""Canonical IDs by the ids of records."""


def show_explanation(world: World, seen: Observation, experiment: Experiment) -> wire.Explanation:
    """What `control.explain` says, with the IDs that people know."""
    found = explain(world, seen, experiment)
    names = {one.id: experiment_name(one.number, one.sub) for one in (*world.experiments, experiment)}
    return {
        "id": names[found.experiment],
        "phase": found.phase.value,
        "state": found.state.value,
        "reason": found.reason.value,
        "summary": found.summary,
        "queue": _show_queue(found, names),
        "blockers": [
            {"block": one.block.value, "text": one.text, "by": _name(one.by, names)} for one in found.blockers
        ],
        "hosts": [_show_host(host, names) for host in found.hosts],
        "jobs": [_show_job(job) for job in found.jobs],
        "network": None if found.network is None else found.network.value,
        "fabric": found.fabric,
    }


def _name(ids: Iterable[int], names: Names) -> list[str]:
    return [names.get(identity, "?") for identity in ids]


def _show_queue(found: Explanation, names: Names) -> wire.QueuePlace | None:
    queue = found.queue
    if queue is None:
        return None
    return {"position": queue.position, "length": queue.length, "ahead": _name(queue.ahead, names)}


def _show_host(host: HostFit, names: Names) -> wire.HostFit:
    return {
        "host": host.host,
        "obstacle": None if host.obstacle is None else host.obstacle.value,
        "text": host.text,
        "jobs": [
            {"job": fit.job, "shortages": [_show_shortage(one, names) for one in fit.shortages]} for fit in host.jobs
        ],
    }


def _show_shortage(one: Shortage, names: Names) -> wire.Shortage:
    return {
        "lack": one.lack.value,
        "needs": one.needs,
        "free": one.free,
        "total": one.total,
        "held_by": _name(one.held_by, names),
        "text": one.text,
    }


def _show_job(job: JobPlace) -> wire.JobPlace:
    return {
        "job": job.job,
        "state": job.state.value,
        "host": job.host,
        "gpus": list(job.gpus),
        "address": job.address,
        "port": job.port,
        "why": job.why,
        "alternatives": list(job.alternatives),
    }
