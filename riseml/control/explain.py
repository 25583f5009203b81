"""Explain why an experiment waits, or why its jobs run where they run. Pure: the same world gives the same answer.

The answer has the shape of the HTTP API and contains its sentences, so that every client shows the same ones.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from riseml.base.names import HostName, experiment_name, name_for_reader
from riseml.base.states import SENTENCES, TERMINAL, JobDuty, State
from riseml.control.actions import ReleaseHost
from riseml.control.data_copies import find_copy_problem
from riseml.control.observation import Observation
from riseml.control.permissions import may_see
from riseml.control.placement.candidates import CandidateHost, find_candidates
from riseml.control.placement.connect import needs_ports
from riseml.control.placement.fit import find_hosts
from riseml.control.placement.free import FreeByHost, find_free_resources
from riseml.control.placement.gpu_models import describe_wanted, wants_models
from riseml.control.placement.hand_over import takes_whole_gangs
from riseml.control.placement.leaders import describe_leaderless
from riseml.control.placement.place import YIELDS, PlacementPass
from riseml.control.placement.queue import make_queue, waits_for_place
from riseml.control.placement.refusal import describe_refusal, list_possible_hosts, show_label
from riseml.control.placement.shortage import UserNames, describe_hosts, describe_nearest
from riseml.control.predecessors import list_awaited, may_await_others
from riseml.control.quota_ends import describe_quota_end, list_quota_users
from riseml.control.visible_names import HIDDEN
from riseml.model import Caller, Experiment, Job, Predecessor, World
from riseml.wire.explanations import BlockerView, ExplanationPhase, ExplanationView

_ANY_LINK = "any"
_CLUSTER_CHOOSES = "the cluster decides where its jobs run"


class BlockerKind(enum.StrEnum):
    """The kind of thing that an experiment waits for."""

    NEVER = "never"  # no host of the pool could hold it, even if the pool were empty
    NO_HOST = "no host"  # no host answers and takes new jobs
    ROOM = "room"  # the resources are not free yet
    RESERVED = "reserved"  # what is free is kept for another experiment
    TURN = "turn"  # its hosts are still clearing its last place
    AFTER = "after"  # other experiments have to end first
    PAUSED = "paused"  # a user has paused its set
    CONCURRENCY = "concurrency"  # its set already runs as many experiments as it may
    QUOTA = "quota"  # its user or its project uses as much as it may
    OTHERS = "others"  # it borrows what is idle, and others wait for room
    SUBNETS = "subnets"  # no subnet is left for its network
    DATA = "data"  # no host that has room has its data
    PORTS = "ports"  # a host has too few free ports
    LEADER = "leader"  # it needs several hosts, whose swarm has no leader
    NETWORK = "network"  # it needs several hosts, and they are not connected or share no output


def explain_experiment(world: World, observation: Observation, experiment: Experiment) -> ExplanationView:
    """Return why an experiment waits, or why its jobs run where they run; without activities, which only hosts know.

    Args:
        world: every experiment that is not closed; `experiment` is missing in it when it is closed.
        observation: what the last pass saw.
        experiment: the experiment to explain.
    """
    if experiment.state in TERMINAL:
        return _make_explanation(experiment, "ended", _describe_reason(experiment))
    if experiment.placed_at is not None:
        return _explain_place(world, observation, experiment)
    if may_await_others(experiment) and list_awaited(experiment, observation):
        return _explain_predecessors(world, observation, experiment)
    if waits_for_place(experiment):
        return _explain_waiting(world, observation, experiment)
    return _make_explanation(experiment, "prepares", _describe_reason(experiment))


def _make_explanation(experiment: Experiment, phase: ExplanationPhase, summary: str) -> ExplanationView:
    return {
        "id": experiment_name(experiment.number, experiment.sub),
        "phase": phase,
        "state": experiment.state.value,
        "reason": experiment.reason.value,
        "summary": summary,
        "queue": None,
        "blockers": [],
        "hosts": [],
        "jobs": [],
        "activities": [],
        "network": None,
        "network_host": None,
    }


def _explain_predecessors(world: World, observation: Observation, experiment: Experiment) -> ExplanationView:
    """Return which experiments it waits for, and their states; while its environment is made, that comes first."""
    awaited = list_awaited(experiment, observation)
    named = [_show_predecessor(world.reader, observation, experiment, predecessor) for predecessor in awaited]
    text = f"it waits for {', '.join(text for _, text in named)}"
    names = [name for name, _ in named if name]
    if experiment.awaits_others:
        explanation = _make_explanation(experiment, "waits", text)
    else:
        explanation = _make_explanation(experiment, "prepares", f"{_describe_reason(experiment)}; then {text}")
    return {**explanation, "blockers": [_make_blocker(BlockerKind.AFTER, text, names)]}


def _show_predecessor(
    reader: Caller | None, observation: Observation, experiment: Experiment, predecessor: Predecessor
) -> tuple[str, str]:
    """Return the name of a predecessor, and the name with its state; no name where the reader does not see it."""
    if reader is not None and not may_see(reader, predecessor.owner, predecessor.team_project):
        return "", HIDDEN
    user = experiment.owner.user if reader is None else reader.user
    name = name_for_reader(user, predecessor.owner, predecessor.number, predecessor.sub)
    observed = observation.predecessors.get(predecessor)
    return name, name if observed is None else f"{name} ({observed.state.value})"


def _describe_reason(experiment: Experiment) -> str:
    sentence = SENTENCES[experiment.reason]
    return f"{sentence} ({experiment.message})" if experiment.message else sentence


def list_concerned_hosts(experiment: Experiment, observation: Observation) -> frozenset[HostName]:
    """Return the hosts on which an experiment has its build or its place, and those on which it could get one."""
    own = frozenset(job.host for job in experiment.jobs if job.host is not None)
    if experiment.placed_at is not None:
        return own
    return own | list_possible_hosts((job.resources for job in experiment.gang), observation)


def explain_queue(world: World, observation: Observation, most: int) -> Iterator[tuple[Experiment, ExplanationView]]:
    """Yield the first experiments of the queue, each with what `explain_experiment` says about it, in one pass.

    Args:
        world: every experiment that is not closed.
        observation: what the last pass saw.
        most: how many experiments are explained.
    """
    queue = make_queue(world.experiments, observation.team)
    placement = PlacementPass(world, observation)
    for index, waiting in enumerate(queue[:most]):
        yield waiting, _explain_turn(world, placement, queue, index)
        placement.serve_queue((waiting,))


def _explain_waiting(world: World, observation: Observation, experiment: Experiment) -> ExplanationView:
    queue = make_queue(world.experiments, observation.team)
    index = [waiting.id for waiting in queue].index(experiment.id)
    placement = PlacementPass(world, observation)
    placement.serve_queue(queue[:index])  # serve the experiments before this one, as the next pass will
    return _explain_turn(world, placement, queue, index)


def _explain_turn(world: World, placement: PlacementPass, queue: Sequence[Experiment], index: int) -> ExplanationView:
    """Return why an experiment of the queue waits; `placement` has served those before it."""
    experiment = queue[index]
    names = UserNames(world, experiment.owner.user)
    blockers = list(_find_blockers(world, placement, experiment, names))
    hosts = describe_hosts(world, placement, experiment, names, blockers)
    parts = [blocker["text"] for blocker in blockers]
    if any(blocker["block"] == BlockerKind.ROOM for blocker in blockers):
        parts.append(describe_nearest(hosts))
    summary = "; ".join(parts) or "it starts with the next pass of the loop"
    return {
        **_make_explanation(experiment, "waits", summary),
        "queue": {
            "position": index + 1,
            "length": len(queue),
            "ahead": names.list_ids(waiting.id for waiting in queue[:index]),
        },
        "blockers": blockers,
        "hosts": hosts,
    }


def _make_blocker(kind: BlockerKind, text: str, by: Sequence[str] = ()) -> BlockerView:
    return {"block": kind.value, "text": text, "by": list(by)}


def _find_blockers(
    world: World, placement: PlacementPass, experiment: Experiment, names: UserNames
) -> Iterator[BlockerView]:
    """Yield everything that keeps an experiment from its place; `placement` has just come to it."""
    observation = placement.seen
    if any(isinstance(action, ReleaseHost) and action.experiment == experiment.id for action in observation.busy):
        yield _make_blocker(BlockerKind.TURN, "the place that it had is being cleared first")
    if experiment.awaits_resume:
        resume = f"`riseml search {experiment.number} --resume` lets it go on"
        yield _make_blocker(BlockerKind.PAUSED, f"its set is paused; {resume}")
        return
    if placement.progress.sets.are_full_for(experiment):
        going = tuple(
            member.id for member in world.experiments if member.set_id == experiment.set_id and _has_place(member)
        )
        limit = f"{experiment.concurrency} of the set at the same time"
        yield _make_blocker(
            BlockerKind.CONCURRENCY, f"train.concurrency: {limit} ({names.join(going)} now)", names.list_ids(going)
        )
        return
    quota_blocker = _find_quota_blocker(world, placement, experiment, names)
    if quota_blocker is not None:
        yield quota_blocker
        return
    never = describe_refusal({job.name: job.resources for job in experiment.gang}, observation)
    if never:
        yield _make_blocker(BlockerKind.NEVER, f"it can never run: {'; '.join(never)}")
    elif not placement.room.candidates:
        troubles = [
            f"; {name}: {host.queue.trouble}"
            for name, host in observation.hosts.items()
            if host.queue and host.queue.trouble
        ]
        yield _make_blocker(BlockerKind.NO_HOST, f"no reachable host accepts new jobs{''.join(troubles)}")
    else:
        yield from _find_blockers_of_turn(placement, experiment, names)


def _find_quota_blocker(
    world: World, placement: PlacementPass, experiment: Experiment, names: UserNames
) -> BlockerView | None:
    """Return the quota that holds an experiment, and when it frees; None: no quota does."""
    if placement.quotas is None:
        return None
    hold = placement.quotas.find_hold(experiment)
    if hold is not None:
        users = list_quota_users(world.experiments, hold)
        text = f"{hold.describe_use()}; {describe_quota_end(hold, users, names, placement.seen.now)}"
        return _make_blocker(BlockerKind.QUOTA, text, names.list_ids(user.id for user in users))
    return _make_blocker(BlockerKind.OTHERS, YIELDS) if placement.quotas.yields_to_others(experiment) else None


def _find_blockers_of_turn(placement: PlacementPass, experiment: Experiment, names: UserNames) -> Iterator[BlockerView]:
    """Yield what keeps an experiment from starting when its turn has come: room, addresses or ports."""
    gang = placement.gang_of(experiment)
    room = placement.room
    copies = placement.find_copies(experiment)
    if copies:
        yield _explain_copies(placement, experiment, [copy.host for copy in copies])
        return
    head = None if placement.head is None else placement.head.experiment
    hosts = room.find_hosts(gang)
    if hosts is None:
        yield _explain_no_hosts(placement, experiment, names)
        return
    if placement.head is not None:
        hosts = room.find_hosts_beside(placement.head.reserve, gang)
    if hosts is None and head is not None:
        text = f"what is free is kept for {names[head.id]}, which is next"
        yield _make_blocker(BlockerKind.RESERVED, text, names.list_ids((head.id,)))
    elif hosts is not None and placement.addresses.connect(experiment, hosts) is None:
        if needs_ports(placement.seen, hosts):
            yield _make_blocker(BlockerKind.PORTS, "no port is left on one of its hosts")
        else:
            yield _make_blocker(BlockerKind.SUBNETS, "no network addresses are left for its jobs")


def _explain_no_hosts(placement: PlacementPass, experiment: Experiment, names: UserNames) -> BlockerView:
    """Return why no hosts together have room for an experiment now."""
    gang = placement.gang_of(experiment)
    room = placement.room
    head = None if placement.head is None else placement.head.experiment
    if placement.awaits_leader(experiment):
        return _make_blocker(BlockerKind.LEADER, f"it needs several hosts, and {describe_leaderless(placement.seen)}")
    linked = {host: replace(candidate, link=_ANY_LINK) for host, candidate in room.candidates.items()}
    if gang.size > 1 and find_hosts(gang, room.free, linked) is not None:
        return _make_blocker(
            BlockerKind.NETWORK, "no single host has room now, and the hosts that have are not connected"
        )
    if not placement.could_ever_start(experiment):
        return _make_blocker(BlockerKind.NO_HOST, "the hosts that answer and take something new could not hold it")
    if head is None:
        return _make_blocker(BlockerKind.ROOM, "no room now; it is next, and room is kept for it")
    return _make_blocker(
        BlockerKind.ROOM, f"no room now, and {names[head.id]} is next before it", names.list_ids((head.id,))
    )


def _explain_copies(placement: PlacementPass, experiment: Experiment, hosts: list[HostName]) -> BlockerView:
    problems = (find_copy_problem(experiment, host, placement.seen) for host in hosts)
    trouble = next((f" ({problem.message})" for problem in problems if problem is not None), "")
    text = f"its data is copied to {', '.join(hosts)} first; what is free there is not kept meanwhile{trouble}"
    return _make_blocker(BlockerKind.DATA, text)


def _explain_place(world: World, observation: Observation, experiment: Experiment) -> ExplanationView:
    gang = [job for job in experiment.gang if job.host is not None]
    candidates = find_candidates(observation)
    answering = {name: host for name, host in observation.hosts.items() if host.silent_since is None and host.taking}
    room = find_free_resources(world.experiments, answering)
    hosts = sorted({job.host for job in gang if job.host is not None})
    where = f"all of it is on {hosts[0]}" if len(hosts) == 1 else f"it is spread over {', '.join(hosts)}"
    summary = f"{_describe_reason(experiment)}; {where}{_describe_quiet(experiment, observation)}"
    return {
        **_make_explanation(experiment, "placed", summary),
        "jobs": [
            {
                "job": job.name,
                "state": job.state.value,
                "host": job.host,
                "node": observation.find_node(experiment, job),
                "gpus": list(job.gpus),
                "address": job.address,
                "port": job.port,
                "image": experiment.image_of(job.name).base,
                "why": _CLUSTER_CHOOSES
                if takes_whole_gangs(job.host, observation)
                else _explain_host(job, gang, candidates),
                "alternatives": list(_find_alternatives(job, room, candidates)),
            }
            for job in gang
            if job.host is not None
        ],
        "network": None if experiment.network is None else experiment.network.value,
        "network_host": experiment.network_host,
    }


def _find_alternatives(job: Job, room: FreeByHost, candidates: Mapping[HostName, CandidateHost]) -> Iterator[HostName]:
    """Yield the other hosts that would have room for a job now."""
    for name, free in room.items():
        is_other = name in candidates and name != job.host
        if is_other and free.holds(job.resources) and candidates[name].accepts(job.resources):
            yield name


def _describe_quiet(experiment: Experiment, observation: Observation) -> str:
    """Return a phrase on how long all jobs have been quiet, if the plan has an `idle_timeout`; else an empty text."""
    limit = experiment.plan.policy.idle_timeout
    running = [job for job in experiment.gang if job.state is State.RUNNING and job.part is not JobDuty.WATCHES]
    quiet = min((observation.quiet.get(experiment.key_of(job), 0.0) for job in running), default=0.0)
    if limit is None or quiet < limit / 10:
        return ""
    return f"; no job has printed or computed anything for {quiet:.0f} s, and idle_timeout ends it after {limit:g} s"


def _explain_host(job: Job, gang: list[Job], candidates: dict[HostName, CandidateHost]) -> str:
    """Return the rules of placement that gave a job its host."""
    reasons = []
    if job.resources.labels:
        reasons.append(f"the host has {', '.join(map(show_label, job.resources.labels))}")
    if wants_models(job.resources):
        reasons.append(f"its GPUs are {describe_wanted(job.resources)}")
    beside = [other.name for other in gang if other.host == job.host and other.name != job.name]
    host = None if job.host is None else candidates.get(job.host)
    if len(gang) == 1:
        reasons.append("of the hosts with room, this one has the least left")
    elif len(beside) == len(gang) - 1:
        reasons.append("one host holds the whole gang")
    elif job.resources.gpus == 0 and any(o.resources.gpus for o in gang if o.host == job.host):
        reasons.append(f"next to {', '.join(beside)}, so that it needs no separate host")
    elif beside:
        reasons.append(f"no host held the whole gang; this one has {len(beside) + 1} of its {len(gang)} jobs")
    else:
        reasons.append("no host held the whole gang")
    spares = host is not None and host.gpus == 0 and any(candidate.gpus for candidate in candidates.values())
    if spares and not any(other.resources.gpus for other in gang):
        reasons.append("hosts with GPUs stay free for jobs that need GPUs")
    return "; ".join(reasons)


def _has_place(experiment: Experiment) -> bool:
    return experiment.placed_at is not None and experiment.state not in TERMINAL
