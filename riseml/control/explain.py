"""Why an experiment waits, or runs where it runs. Pure, as everything here: the same world gives the same answer."""

from __future__ import annotations

from collections.abc import Iterator

from riseml.control.actions import ReleaseHost
from riseml.control.explanation import Blocker, BlockerKind, Explanation, ExplanationPhase, JobPlace, QueuePlace
from riseml.control.observation import Observation
from riseml.control.placement.fit import fit
from riseml.control.placement.ledger import Site, find_sites, free_room
from riseml.control.placement.place import PlacementPass, give_place
from riseml.control.placement.queue import make_queue, waits
from riseml.control.placement.refusal import misfit, show_label
from riseml.control.placement.shortage import Namer, describe_nearest, explain_hosts
from riseml.model import Experiment, Job, World
from riseml.names import HostName
from riseml.states import SENTENCES, TERMINAL, Network


def explain(world: World, seen: Observation, experiment: Experiment) -> Explanation:
    """Everything there is to say about an experiment's place or its waiting for one.

    Args:
        world: every experiment that is not closed; `experiment` need not be in it when it is closed.
        seen: what the last pass saw.
        experiment: whose place is explained.
    """
    if experiment.state in TERMINAL:
        return _bare(experiment, ExplanationPhase.ENDED, _sentence(experiment))
    if experiment.placed_at is not None:
        return _explain_place(world, seen, experiment)
    if waits(experiment):
        return _explain_waiting(world, seen, experiment)
    return _bare(experiment, ExplanationPhase.PREPARES, _sentence(experiment))


def _bare(experiment: Experiment, phase: ExplanationPhase, summary: str) -> Explanation:
    return Explanation(experiment.id, phase, experiment.state, experiment.reason, summary)


def _sentence(experiment: Experiment) -> str:
    sentence = SENTENCES[experiment.reason]
    return f"{sentence} ({experiment.message})" if experiment.message else sentence


def _explain_waiting(world: World, seen: Observation, experiment: Experiment) -> Explanation:
    queue = make_queue(world.experiments)
    ids = [waiting.id for waiting in queue]
    ahead = tuple(ids[: ids.index(experiment.id)])
    place = QueuePlace(len(ahead) + 1, len(queue), ahead)
    desk = PlacementPass(world, seen)
    for waiting in queue[: len(ahead)]:
        desk.serve(waiting)
    name = Namer(world, experiment.owner.user)
    blockers = tuple(_find_blockers(world, desk, experiment, name))
    hosts = explain_hosts(world, desk, experiment, name)
    parts = [blocker.text for blocker in blockers]
    if any(blocker.kind is BlockerKind.ROOM for blocker in blockers):
        parts.append(describe_nearest(hosts, desk.gang_of(experiment)))
    return Explanation(
        experiment.id,
        ExplanationPhase.WAITS,
        experiment.state,
        experiment.reason,
        "; ".join(parts) or "it starts with the next pass of the loop",
        queue=place,
        blockers=blockers,
        hosts=hosts,
    )


def _find_blockers(world: World, desk: PlacementPass, experiment: Experiment, name: Namer) -> Iterator[Blocker]:
    seen = desk.look()
    if any(isinstance(action, ReleaseHost) and action.experiment == experiment.id for action in seen.busy):
        yield Blocker(BlockerKind.TURN, "the place that it had is being cleared first")
    if desk.sets.are_full_for(experiment):
        going = tuple(one.id for one in world.experiments if one.set_id == experiment.set_id and _has_place(one))
        limit = f"{experiment.concurrency} of the set at the same time"
        yield Blocker(BlockerKind.CONCURRENCY, f"train.concurrency: {limit} ({name.list(going)} now)", going)
        return
    never = misfit({job.name: job.resources for job in experiment.gang}, seen)
    if never:
        yield Blocker(BlockerKind.NEVER, f"it can never run: {'; '.join(never)}")
    elif not desk.sites:
        yield Blocker(BlockerKind.NO_HOST, "no host answers and takes anything new")
    else:
        yield from _find_lack(desk, experiment, name)


def _find_lack(desk: PlacementPass, experiment: Experiment, name: Namer) -> Iterator[Blocker]:
    gang, head = desk.gang_of(experiment), desk.head
    if fit(gang, desk.room, desk.sites) is None:
        apart = {host: Site(site.labels, site.gpus, "any") for host, site in desk.sites.items()}
        if gang.size > 1 and fit(gang, desk.room, apart) is not None:
            yield Blocker(BlockerKind.NETWORK, "no single host has room now, and the hosts that have are not connected")
        elif not desk.could_hold(experiment):
            yield Blocker(BlockerKind.NO_HOST, "the hosts that answer and take something new could not hold it")
        elif head is None or head.id == experiment.id:
            yield Blocker(BlockerKind.ROOM, "no room now; it is next, and room is kept for it")
        else:
            yield Blocker(BlockerKind.ROOM, f"no room now, and {name(head.id)} is next before it", (head.id,))
        return
    hosts = fit(gang, desk.free_for(experiment), desk.sites)
    if hosts is None and head is not None:
        yield Blocker(BlockerKind.RESERVED, f"what is free is kept for {name(head.id)}, which is next", (head.id,))
    elif hosts is not None and give_place(experiment, hosts, desk) is None:
        shared = len(set(hosts)) > 1 or desk.look().network is not Network.HOST
        by_ports = not desk.look().hosts[hosts[0]].isolated or not shared
        text = "no port is left on one of its hosts" if by_ports else "no network addresses are left for its jobs"
        yield Blocker(BlockerKind.PORTS if by_ports else BlockerKind.SUBNETS, text)


def _explain_place(world: World, seen: Observation, experiment: Experiment) -> Explanation:
    gang = [job for job in experiment.gang if job.host is not None]
    sites = find_sites(seen, (), ())
    answering = {name: host for name, host in seen.hosts.items() if host.silent_since is None and host.taking}
    room = free_room(world.experiments, answering)
    places = tuple(
        JobPlace(
            job.name,
            job.state,
            job.reason,
            job.host,
            job.gpus,
            job.address,
            job.port,
            _why_there(job, gang, sites),
            tuple(
                name
                for name, free in room.items()
                if name != job.host and free.holds(job.resources) and sites[name].suits(job.resources.labels)
            ),
        )
        for job in gang
        if job.host is not None
    )
    hosts = sorted({place.host for place in places})
    where = f"all of it is on {hosts[0]}" if len(hosts) == 1 else f"it is spread over {', '.join(hosts)}"
    return Explanation(
        experiment.id,
        ExplanationPhase.PLACED,
        experiment.state,
        experiment.reason,
        f"{_sentence(experiment)}; {where}",
        jobs=places,
        network=experiment.network,
        network_host=experiment.network_host,
    )


def _why_there(job: Job, gang: list[Job], sites: dict[HostName, Site]) -> str:
    """The packing rule that brought it there."""
    reasons = []
    if job.resources.labels:
        reasons.append(f"the host has {', '.join(map(show_label, job.resources.labels))}")
    beside = [other.name for other in gang if other.host == job.host and other.name != job.name]
    site = None if job.host is None else sites.get(job.host)
    if len(gang) == 1:
        reasons.append("of the hosts with room it had the least left over")
    elif len(beside) == len(gang) - 1:
        reasons.append("one host holds the whole gang")
    elif job.resources.gpus == 0 and any(o.resources.gpus for o in gang if o.host == job.host):
        reasons.append(f"beside {', '.join(beside)}, so that it takes no host of its own")
    elif beside:
        reasons.append(f"no host held the whole gang; this one has {len(beside) + 1} of its {len(gang)} jobs")
    else:
        reasons.append("no host held the whole gang")
    if site is not None and site.gpus == 0 and not any(other.resources.gpus for other in gang):
        reasons.append("hosts with GPUs stay free for those who need them")
    return "; ".join(reasons)


def _has_place(experiment: Experiment) -> bool:
    return experiment.placed_at is not None and experiment.state not in TERMINAL
