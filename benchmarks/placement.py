"""Placement: the time of one decision with many hosts and a long queue, and the share of GPUs in use."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random

from benchmarks.common import BenchContext, Measure, Report, bar_at_least, bar_of_time, median, print_progress
from riseml.base.names import HostName, JobName
from riseml.base.states import PLACED, TERMINAL, JobDuty, Network, State
from riseml.control.actions import PrepareHost, StartJob
from riseml.control.decide import decide
from riseml.control.observation import Observation
from riseml.control.placement.place import place_gangs
from riseml.model import (
    Capacity,
    ContainerObservation,
    Experiment,
    HostObservation,
    Image,
    ImageObservation,
    Job,
    JobKey,
    Owner,
    Plan,
    World,
)
from riseml.model import PlannedJob as Planned
from riseml.planning.plan import first_jobs
from riseml.spec.config.types import Limits, Resources

_NOW = datetime(2026, 8, 31, 7, 23, 46, tzinfo=UTC)
_HOSTS = 1000
_RUNNING = 1000
_QUEUED = (10, 100, 1000, 10_000)
_DECIDE = 0.100  # seconds
_USERS = 20
_SHAPES = 20
_SMALL_POOL = 20  # hosts, for the utilisation
_WORKLOAD = 400  # experiments
_CAPACITY = Capacity(32.0, 262_144, tuple(f"gpu{device}" for device in range(8)))
_IMAGE = {"base": ImageObservation(present=True)}

Policy = Callable[[World, Observation], World]


def run(context: BenchContext) -> Report:
    report = Report()
    times = {queued: _decide(queued, context.rounds(9, 3)) for queued in (_QUEUED[:2] if context.quick else _QUEUED)}
    for queued, values in times.items():
        report.add(f"one decide, {_HOSTS:,} hosts, full", Measure(f"{queued:,} wait", values, "ms", "processor time"))
    largest = max(times)
    requirement = f"one decide: {_HOSTS:,} hosts, {_RUNNING:,} running, {largest:,} waiting"
    report.bars.append(bar_of_time(requirement, median(times[largest]), _DECIDE, "ms"))
    shares: dict[str, list[float]] = {"first-fit FIFO": [], "riseml": []}
    for seed in range(context.rounds(5)):
        for name, policy in (("first-fit FIFO", place_first_fit), ("riseml", place_gangs)):
            print_progress(f"  workload {seed + 1}: {name}")
            shares[name].append(100 * Workload(seed, _WORKLOAD if not context.quick else 60).play(policy))
    for name, percents in shares.items():
        report.add("GPUs in use until the last one starts", Measure(name, tuple(percents), "%"))
    ratio = 100 * median(shares["riseml"]) / median(shares["first-fit FIFO"])
    report.bars.append(bar_at_least("GPUs in use, compared with first-fit FIFO", ratio, 100))
    return report


def _decide(queued: int, times: int) -> tuple[float, ...]:
    """Return the processor seconds of passes that change nothing: everything that fits runs, the rest waits."""
    world, observation = _settle(World(tuple(_draw(Random(1), queued + _RUNNING))))
    values = []
    for _ in range(times):
        begun = time.process_time()
        decide(world, observation)
        values.append(time.process_time() - begun)
    print_progress(
        f"  {queued:,} wait, {sum(experiment.placed_at is not None for experiment in world.experiments):,} run"
    )
    return tuple(values)


def _settle(world: World) -> tuple[World, Observation]:
    """Apply decisions until nothing changes, and return the world with its observation."""
    containers: dict[HostName, dict[JobKey, ContainerObservation]] = {name: {} for name in _names(_HOSTS)}
    networks: dict[HostName, dict[int, str]] = {name: {} for name in containers}
    while True:
        hosts = {
            name: replace(_host(name), containers=dict(containers[name]), networks=dict(networks[name]), images=_IMAGE)
            for name in containers
        }
        observation = Observation(_NOW, hosts, subnets="10.0.0.0/8", network=Network.OVERLAY)
        decision = decide(world, observation)
        if decision.world == world and not decision.actions:
            return world, observation
        world = decision.world
        for action in decision.actions:
            match action:
                case StartJob(host, key):
                    containers[host][key] = ContainerObservation(key, str(key), started=True, started_at=_NOW)
                case PrepareHost(host, experiment, subnet):
                    networks[host][experiment] = subnet or ""


def _names(count: int) -> list[HostName]:
    return [HostName(f"host-{number:04}") for number in range(count)]


def _host(name: HostName) -> HostObservation:
    return HostObservation(_CAPACITY, swarm="swarm", manager=name <= HostName("host-0004"))


def _draw(random: Random, count: int) -> list[Experiment]:
    """Return random experiments of several users and shapes, whose environment is ready."""
    plans = [_plan(random) for _ in range(_SHAPES)]
    experiments = []
    for identity in range(1, count + 1):
        plan = random.choice(plans)
        jobs = tuple(
            replace(job, state=State.FINISHED, host=HostName("host-0000")) if job.part is JobDuty.PREPARES else job
            for job in first_jobs(plan)
        )
        owner = Owner(f"user{random.randrange(_USERS)}", 1000, 1000)
        experiments.append(Experiment(identity, owner, identity, plan.project, plan, jobs, _NOW))
    return experiments


def _plan(random: Random) -> Plan:
    """Return a random plan: one job, or workers with a ps; each job but the ps has 1 to 8 GPUs."""
    workers = random.choice([1, 1, 1, 2, 3])
    need = Resources(random.randint(1, 4), random.randint(1, 24) * 1024, random.choice([1, 2, 4, 8]))
    jobs = [Planned(JobName("train"), JobDuty.DECIDES, need, Limits(), ("true",))]
    if workers > 1:
        jobs += [Planned(JobName(f"worker.{n}"), JobDuty.HELPS, need, Limits(), ("true",)) for n in range(1, workers)]
        jobs.append(Planned(JobName("ps.1"), JobDuty.SERVES, replace(need, gpus=0), Limits(), ("true",)))
    return Plan("bench", Image("base"), tuple(jobs), "plain")


@dataclass(frozen=True, slots=True)
class Workload:
    """Experiments for a small pool. All are submitted at the start, and the policy does not know their durations."""

    seed: int
    size: int  # experiments

    def play(self, policy: Policy) -> float:
        """Return the average share of the GPUs in use until the last experiment starts."""
        random = Random(self.seed)
        world = World(tuple(_draw(random, self.size)))
        lengths = {experiment.id: random.lognormvariate(4, 1) for experiment in world.experiments}
        hosts = {name: _host(name) for name in _names(_SMALL_POOL)}
        now = 0.0
        used = 0.0
        ends = dict[int, float]()
        while True:
            observation = Observation(
                _NOW + timedelta(seconds=now), hosts, subnets="10.0.0.0/8", network=Network.OVERLAY
            )
            world = policy(world, observation)
            for experiment in world.experiments:
                if experiment.placed_at is not None:
                    ends.setdefault(experiment.id, now + lengths[experiment.id])
            if len(ends) == self.size:
                return used / (now * _SMALL_POOL * len(_CAPACITY.gpus))
            going = [
                experiment
                for experiment in world.experiments
                if experiment.placed_at is not None and experiment.state not in TERMINAL
            ]
            then = min(ends[experiment.id] for experiment in going)
            used += (then - now) * sum(
                job.resources.gpus for experiment in going for job in experiment.jobs if job.state in PLACED
            )
            now = then
            world = World(
                tuple(
                    _end(experiment) if ends.get(experiment.id) == now else experiment
                    for experiment in world.experiments
                )
            )


def _end(experiment: Experiment) -> Experiment:
    jobs = tuple(replace(job, state=State.FINISHED) if job.state in PLACED else job for job in experiment.jobs)
    return replace(experiment, jobs=jobs, state=State.FINISHED)


def place_first_fit(world: World, observation: Observation) -> World:
    """Place experiments in the order of submission, each job on the first host with room. None overtakes another."""
    free = {
        name: [host.capacity.cpus, host.capacity.mem, len(host.capacity.gpus)]
        for name, host in observation.hosts.items()
    }
    experiments = list(world.experiments)
    for experiment in experiments:
        for job in experiment.jobs:
            if job.state in PLACED and job.host is not None:
                _take(free, job.host, job)
    for index, experiment in enumerate(experiments):
        if experiment.placed_at is not None:
            continue
        trial = {name: list(amounts) for name, amounts in free.items()}
        jobs = [job if job.part is JobDuty.PREPARES else _put(trial, job) for job in experiment.jobs]
        if any(job is None for job in jobs):
            break
        free = trial
        placed = tuple(job for job in jobs if job is not None)
        experiments[index] = replace(experiment, jobs=placed, placed_at=observation.now, state=State.STARTING)
    return World(tuple(experiments))


def _put(free: dict[HostName, list[float]], job: Job) -> Job | None:
    need = job.resources
    for name, (cpus, mem, gpus) in free.items():
        if need.cpus <= cpus and need.mem <= mem and need.gpus <= gpus:
            _take(free, name, job)
            return replace(job, host=name, state=State.STARTING)
    return None


def _take(free: dict[HostName, list[float]], name: HostName, job: Job) -> None:
    for index, amount in enumerate((job.resources.cpus, job.resources.mem, job.resources.gpus)):
        free[name][index] -= amount
