"""What each host lacks for each job of a gang that waits, and which experiments hold it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from riseml.base.names import HostName, experiment_name
from riseml.base.states import PLACED
from riseml.control.placement.candidates import HostExclusion
from riseml.control.placement.fit import Gang, find_hosts
from riseml.control.placement.free import SLACK, FreeResources, find_free_resources
from riseml.control.placement.gpu_models import describe_models, describe_wanted, has_wanted_gpus, list_models
from riseml.control.placement.place import PlacementPass
from riseml.control.placement.refusal import show_label
from riseml.control.visible_names import HIDDEN, name_for
from riseml.model import Experiment, HostObservation, Job, World
from riseml.wire.explanations import (
    BlockerView,
    HostFitView,
    JobFitView,
    ResourceName,
    ShortageView,
)

_EXCLUSIONS = {
    HostExclusion.SILENT: "does not answer",
    HostExclusion.LOST: "has not answered for too long",
    HostExclusion.DRAINED: "is drained: it gets nothing new",
    HostExclusion.STALE: "is being cleared of what other attempts left there",
}


class UserNames:
    """Names experiments by the id of their record, as one user knows them: `4`, or `anna.4` of another user. With a
    reader (`World.reader`), it names none that they do not see.
    """

    def __init__(self, world: World, user: str) -> None:
        self._experiments = {experiment.id: experiment for experiment in world.experiments}
        self._user = user
        self._reader = world.reader

    def __getitem__(self, identity: int) -> str:
        if self._reader is not None:
            return name_for(self._reader, self._experiments[identity]) or HIDDEN
        owner = self._experiments[identity].owner.user
        return self._find_id(identity) if owner == self._user else f"{owner}.{self._find_id(identity)}"

    def join(self, identities: Iterable[int]) -> str:
        """Return several names: `4, anna.7`."""
        return ", ".join(dict.fromkeys(map(self.__getitem__, identities)))

    def list_ids(self, identities: Iterable[int]) -> list[str]:
        """Return canonical IDs: `4`, `7`; for a reader without those that they do not see."""
        if self._reader is not None:
            names = (name_for(self._reader, self._experiments[identity]) for identity in identities)
            return [name for name in names if name is not None]
        return [*map(self._find_id, identities)]

    def _find_id(self, identity: int) -> str:
        experiment = self._experiments[identity]
        return experiment_name(experiment.number, experiment.sub)


def describe_hosts(
    world: World,
    placement: PlacementPass,
    experiment: Experiment,
    names: UserNames,
    blockers: Sequence[BlockerView] = (),
) -> list[HostFitView]:
    """Return every host with what it lacks for each job of the experiment, each job taken alone.

    Args:
        world: every open experiment.
        placement: the pass, which has just come to the experiment.
        experiment: it waits.
        names: of the experiments, for the user.
        blockers: what the experiment waits for; the reason of a host that lacks nothing.
    """
    observation = placement.seen
    gang = placement.gang_of(experiment)
    room = find_free_resources(world.experiments, observation.hosts)
    room.update(placement.room.free)
    holders = _find_holders(world)
    fits: list[HostFitView] = []
    for host_name, host in sorted(observation.hosts.items()):
        exclusion = placement.exclusions.get(host_name)
        holders_here = holders.get(host_name, {})
        jobs: list[JobFitView] = [
            {"job": job.name, "shortages": list(_find_shortages(job, host, room[host_name], holders_here, names))}
            for job in experiment.gang
        ]
        text = "" if exclusion is None else _EXCLUSIONS[exclusion]
        if exclusion is None and not any(job["shortages"] for job in jobs):
            text = _explain_room(gang, host_name, placement, blockers)
        fits.append(
            {
                "host": host_name,
                "obstacle": None if exclusion is None else exclusion.value,
                "text": text,
                "jobs": jobs,
            }
        )
    return fits


def _explain_room(gang: Gang, host: HostName, placement: PlacementPass, blockers: Sequence[BlockerView]) -> str:
    """Return why a gang does not get a host that has room for each of its jobs."""
    candidates = placement.room.candidates
    free = {host: placement.room.free[host]} if host in placement.room.free else {}
    if gang.size > 1 and host in candidates and find_hosts(gang, free, candidates) is None:
        return "has room for any one of the jobs, not for all together"
    why = next((blocker["text"] for blocker in blockers), "")
    return f"has room: {why}" if why else "has room"


def describe_nearest(hosts: Iterable[HostFitView]) -> str:
    """Return the shortages of the host that lacks the least: `host h1: gpus: needs 2, 1 free of 4 (held by 7, 9)`."""
    nearest = min(hosts, key=lambda host: (host["obstacle"] is not None, _count_unfit_jobs(host), host["host"]))
    shortages = [shortage["text"] for job in nearest["jobs"] for shortage in job["shortages"]]
    if nearest["obstacle"] is None and shortages:
        return f"host {nearest['host']}: {', '.join(dict.fromkeys(shortages))}"
    return f"host {nearest['host']} {nearest['text']}"


def _count_unfit_jobs(host: HostFitView) -> int:
    return sum(1 for job in host["jobs"] if job["shortages"])


Holders = Mapping[int, list[Job]]
"""The jobs that hold resources of one host, by the id of their experiment."""


def _find_holders(world: World) -> dict[HostName, dict[int, list[Job]]]:
    holders: dict[HostName, dict[int, list[Job]]] = {}
    for experiment in world.experiments:
        for job in experiment.gang:
            if job.host is not None and job.state in PLACED:
                holders.setdefault(job.host, {}).setdefault(experiment.id, []).append(job)
    return holders


def _find_shortages(
    job: Job, host: HostObservation, free: FreeResources, holders: Holders, names: UserNames
) -> Iterator[ShortageView]:
    need = job.resources
    labels = dict(host.labels)
    for label in need.labels:
        if labels.get(label[0]) != label[1]:
            actual = f"has {show_label((label[0], labels[label[0]]))}" if label[0] in labels else "has no such label"
            yield _make_shortage("label", (0, 0, 0), f"label: needs {show_label(label)}, {actual}")
    models = list_models(host)
    if not has_wanted_gpus(models, need):
        actual = describe_models(models, len(host.capacity.gpus))
        yield _make_shortage("gpu", (0, 0, 0), f"gpu: needs {describe_wanted(need)}, has {actual}")
    if need.cpus > free.cpus + SLACK:
        by = _list_holders(holders, lambda holder: holder.resources.cpus > 0)
        yield _make_held_shortage("cpus", (need.cpus, free.cpus, host.capacity.cpus), by, names)
    if need.mem > free.mem:
        by = _list_holders(holders, lambda holder: holder.resources.mem > 0)
        yield _make_held_shortage("mem", (need.mem, free.mem, host.capacity.mem), by, names)
    if need.gpus > len(free.gpus):
        by = _list_holders(holders, lambda holder: bool(holder.gpus))
        yield _make_held_shortage("gpus", (need.gpus, len(free.gpus), len(host.capacity.gpus)), by, names)


def _list_holders(holders: Holders, holds: Callable[[Job], bool]) -> tuple[int, ...]:
    """Return the ids of the experiments with a job that holds the resource, in their order."""
    return tuple(owner for owner, jobs in sorted(holders.items()) if any(map(holds, jobs)))


def _make_held_shortage(
    resource: ResourceName, amounts: tuple[float, float, float], by: tuple[int, ...], names: UserNames
) -> ShortageView:
    holders = f" (held by {names.join(by)})" if by else ""
    needs, free, total = (_show_amount(resource, amount) for amount in amounts)
    text = f"{resource}: needs {needs}, {free} free of {total}{holders}"
    return _make_shortage(resource, amounts, text, names.list_ids(by))


def _make_shortage(
    resource: ResourceName, amounts: tuple[float, float, float], text: str, held_by: Sequence[str] = ()
) -> ShortageView:
    """Return what one host lacks for one job. The amounts are what the job needs, and what the host has free and in
    all: cores, MiB or devices; 0 for a label or a model."""
    needs, free, total = amounts
    return {"lack": resource, "needs": needs, "free": free, "total": total, "held_by": list(held_by), "text": text}


def _show_amount(resource: ResourceName, amount: float) -> str:
    if resource == "cpus":  # sums of fractions are not exact: round them
        return f"{max(0.0, round(amount, 3)):g}"
    return f"{max(0, int(amount))} MiB" if resource == "mem" else str(max(0, int(amount)))
