"""Who may start, and where: all jobs of a gang or none, in the order of the queue, on as few hosts as possible."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from riseml.control.actions import Prepare
from riseml.control.observation import Observation
from riseml.model import Capacity, Experiment, HostSeen, Job, World
from riseml.names import HostName, JobName
from riseml.spec.types import Resources
from riseml.states import PLACED, TERMINAL, Part, Reason, State

_LOOPBACK = "127.0.0.1"
PORTS = range(20000, 32000)
"""What jobs that share a machine's loopback may listen on: below the range that the kernel hands out to clients."""

_SLACK = 1e-6  # cores; sums of 0.1 must not refuse what fits
_RESERVED_ADDRESSES = 3  # of a subnet: itself, its gateway, its broadcast


@dataclass(frozen=True, slots=True)
class Free:
    """What is left on one host: cores, MiB, GPU device ids."""

    cpus: float
    mem: int
    gpus: tuple[str, ...]

    def holds(self, need: Resources) -> bool:
        return need.cpus <= self.cpus + _SLACK and need.mem <= self.mem and need.gpus <= len(self.gpus)

    def less(self, need: Resources) -> Free:
        return Free(self.cpus - need.cpus, self.mem - need.mem, self.gpus[need.gpus :])


Room = Mapping[HostName, Free]


def place(world: World, seen: Observation, held: frozenset[int] = frozenset()) -> World:
    """Give a place to every gang that has its turn and fits; a gang that does not fit holds up those behind it.

    Those in `held` had a place when the pass began: giving one up and taking another are written down one after the
    other.
    """
    experiments = {experiment.id: experiment for experiment in world.experiments}
    queue = sorted(
        (experiment for experiment in world.experiments if _waits(experiment) and experiment.id not in held),
        key=lambda experiment: (-experiment.plan.priority, experiment.id),
    )
    blocked = False
    for waiting in queue:
        if _held_by_set(waiting, experiments.values()):
            experiments[waiting.id] = replace(waiting, state=State.PENDING, reason=Reason.CONCURRENCY)
            continue
        placed = None if blocked else _place_gang(waiting, tuple(experiments.values()), seen)
        blocked = blocked or placed is None
        experiments[waiting.id] = placed or replace(waiting, state=State.PENDING, reason=Reason.NO_ROOM)
    return World(tuple(experiments[experiment.id] for experiment in world.experiments))


def readdress(world: World, seen: Observation) -> World:
    """Another subnet for every gang that found its own taken by somebody whom we could not see."""
    experiments = list(world.experiments)
    for index, experiment in enumerate(experiments):
        hosts = {job.host for job in experiment.jobs if job.host is not None and job.state in PLACED}
        problems = [seen.problems.get(Prepare(host, experiment.id, experiment.subnet)) for host in hosts]
        if not any(problem is not None and problem.subnet_taken for problem in problems):
            continue
        gang = [job for job in experiment.jobs if job.part is not Part.PREPARES]
        subnet = _free_subnet(len(gang), tuple(experiments), seen)
        if subnet is not None:
            pairs = dict(zip((job.name for job in gang), _addresses(subnet, len(gang)), strict=True))
            jobs = tuple(replace(job, address=pairs.get(job.name)) for job in experiment.jobs)
            experiments[index] = replace(experiment, subnet=subnet, jobs=jobs)
    return World(tuple(experiments))


def misfit(needs: Mapping[JobName, Resources], hosts: Mapping[HostName, Capacity]) -> tuple[str, ...]:
    """Why no empty pool of these hosts could hold the gang, a sentence a host; empty when it could."""
    empty = {name: Free(host.cpus, host.mem, host.gpus) for name, host in hosts.items()}
    if fit(needs, empty) is not None:
        return ()
    total = Resources(
        sum(need.cpus for need in needs.values()),
        sum(need.mem for need in needs.values()),
        sum(need.gpus for need in needs.values()),
    )
    who = "the job needs" if len(needs) == 1 else f"the {len(needs)} jobs together need"
    wanted = f"{who} {_describe(total.cpus, total.mem, total.gpus)}"
    return (wanted, *(f"host {name} has {_describe(h.cpus, h.mem, len(h.gpus))}" for name, h in sorted(hosts.items())))


def fit(needs: Mapping[JobName, Resources], room: Room) -> dict[JobName, HostName] | None:
    """A host for every job, None when there is none for all of them. One host for the whole gang is tried first."""
    order = sorted(needs, key=lambda job: (-needs[job].gpus, -needs[job].mem, -needs[job].cpus, job))
    tightest = sorted(room, key=lambda host: (len(room[host].gpus), room[host].cpus, room[host].mem, host))
    for host in tightest:
        if _fill(order, needs, {host: room[host]}, [host]) is not None:
            return dict.fromkeys(needs, host)
    return _fill(order, needs, dict(room), tightest[::-1])


def free_room(experiments: Iterable[Experiment], hosts: Mapping[HostName, HostSeen]) -> dict[HostName, Free]:
    """What is left on every host."""
    held: dict[HostName, list[Job]] = {}
    for experiment in experiments:
        for job in experiment.jobs:
            if job.host is not None and job.state in PLACED and job.part is not Part.PREPARES:
                held.setdefault(job.host, []).append(job)
    return {name: _left(host.capacity, held.get(name, [])) for name, host in sorted(hosts.items())}


def _left(capacity: Capacity, jobs: list[Job]) -> Free:
    taken = {gpu for job in jobs for gpu in job.gpus}
    return Free(
        capacity.cpus - sum(job.resources.cpus for job in jobs),
        capacity.mem - sum(job.resources.mem for job in jobs),
        tuple(gpu for gpu in capacity.gpus if gpu not in taken),
    )


def _fill(
    order: list[JobName], needs: Mapping[JobName, Resources], room: dict[HostName, Free], hosts: list[HostName]
) -> dict[JobName, HostName] | None:
    found: dict[JobName, HostName] = {}
    for job in order:
        host = next((name for name in hosts if room[name].holds(needs[job])), None)
        if host is None:
            return None
        room[host] = room[host].less(needs[job])
        found[job] = host
    return found


def _waits(experiment: Experiment) -> bool:
    """True when everything but a place is there."""
    if experiment.verdict is not None or experiment.state in TERMINAL:
        return False
    ready = all(job.state is State.FINISHED for job in experiment.jobs if job.part is Part.PREPARES)
    return ready and experiment.placed_at is None


def _held_by_set(experiment: Experiment, others: Iterable[Experiment]) -> bool:
    if experiment.set_id is None:
        return False
    going = [
        other
        for other in others
        if other.set_id == experiment.set_id and other.placed_at is not None and other.state not in TERMINAL
    ]
    return len(going) >= experiment.concurrency


def _place_gang(waiting: Experiment, experiments: tuple[Experiment, ...], seen: Observation) -> Experiment | None:
    answering = {name: host for name, host in seen.hosts.items() if host.silent_since is None}
    room = free_room(experiments, answering)
    gang = tuple(job for job in waiting.jobs if job.part is not Part.PREPARES)
    hosts = fit({job.name: job.resources for job in gang}, room)
    if hosts is None:
        return None
    isolated = all(seen.hosts[host].isolated for host in hosts.values())
    subnet = (waiting.subnet or _free_subnet(len(gang), experiments, seen)) if isolated else None
    if isolated and subnet is None:
        return None
    addresses = _addresses(subnet, len(gang)) if subnet else iter([_LOOPBACK] * len(gang))
    ports = [] if isolated else list(islice(_free_ports(experiments, seen, set(hosts.values())), len(gang)))
    if not isolated and len(ports) < len(gang):
        return None
    placed: dict[JobName, Job] = {}
    for job in gang:
        host = hosts[job.name]
        gpus = room[host].gpus[: job.resources.gpus]
        room[host] = room[host].less(job.resources)
        placed[job.name] = replace(
            job,
            state=State.STARTING,
            reason=Reason.PLACED,
            host=host,
            address=next(addresses),
            port=ports.pop(0) if ports else None,
            gpus=gpus,
        )
    return replace(
        waiting,
        jobs=tuple(placed.get(job.name, job) for job in waiting.jobs),
        subnet=subnet,
        placed_at=seen.now,
        state=State.STARTING,
        reason=Reason.PLACED,
        message="",
    )


def _free_subnet(jobs: int, experiments: tuple[Experiment, ...], seen: Observation) -> str | None:
    """The first subnet of the range that holds the gang and overlaps with nobody's on any host; None: all are taken."""
    prefix = 26 if jobs + _RESERVED_ADDRESSES <= 64 else 32 - (jobs + _RESERVED_ADDRESSES - 1).bit_length()
    taken = [ipaddress.ip_network(other.subnet) for other in experiments if other.subnet]
    for host in seen.hosts.values():
        taken += [ipaddress.ip_network(text) for text in (*host.foreign_subnets, *host.networks.values()) if text]
    for candidate in ipaddress.ip_network(seen.subnets).subnets(new_prefix=prefix):
        if not any(candidate.version == other.version and candidate.overlaps(other) for other in taken):
            return str(candidate)
    return None


def _addresses(subnet: str, count: int) -> Iterator[str]:
    hosts = ipaddress.ip_network(subnet).hosts()
    next(hosts)  # the gateway
    return (str(next(hosts)) for _ in range(count))


def _free_ports(experiments: tuple[Experiment, ...], seen: Observation, hosts: set[HostName]) -> Iterator[int]:
    taken = {job.port for experiment in experiments for job in experiment.jobs if job.port is not None}
    for host in hosts:
        taken |= seen.hosts[host].busy_ports
    return (port for port in PORTS if port not in taken)


def _describe(cpus: float, mem: int, gpus: int) -> str:
    return f"{cpus:g} cpus, {mem} MiB and {gpus} gpus"
