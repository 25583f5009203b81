"""A small control loop for tests: load, observe, decide, save, act, against hosts in memory; the test sets the time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from riseml.base.errors import EngineError, RisemlError
from riseml.base.names import HostName, JobName
from riseml.base.states import JobDuty, Network, State, Wanted
from riseml.control.actions import (
    Action,
    CancelData,
    CancelImage,
    CancelRestore,
    CopyData,
    CopyImage,
    EnsureImage,
    FetchData,
    InheritOutput,
    NeedsRecord,
    PrepareHost,
    ReleaseHost,
    RestoreOutput,
    SaveOutput,
    StartGang,
    StartJob,
)
from riseml.control.decide import Decision, changes_to_save, decide, takes_place
from riseml.control.images import awaited_images, choose_image, list_resolved
from riseml.control.observation import NEVER_SAVED, Observation, PredecessorObservation, SaveObservation
from riseml.control.quotas import QuotaRules
from riseml.control.saving import find_attempt
from riseml.executors.base import BuildRequest, Cancellation, HostSetup, ImageMissing, SubnetTaken
from riseml.executors.gangs import make_gang_request
from riseml.model import (
    ActionFailure,
    Capacity,
    Experiment,
    HostObservation,
    Image,
    Job,
    JobKey,
    Owner,
    Plan,
    PlannedJob,
    Predecessor,
    World,
)
from riseml.planning.launch import LaunchTarget, StorageRoots, make_launch
from riseml.planning.plan import first_jobs
from riseml.spec.config.types import Limits, Resources, Retry, RunPolicy
from tests.support.memory_cluster import MemoryCluster
from tests.support.memory_executor import MemoryExecutor

START = datetime(2026, 8, 31, 7, 23, 46, tzinfo=UTC)
LAUNCH_TARGET = LaunchTarget("5e7a" * 8, StorageRoots("/home/paul/output", "/home/paul/data"))
LOST_AFTER = 300.0


class Crash(BaseException):
    """The server dies here."""


class Witness:
    """Sees every save and every action before it happens; may raise."""

    def saves(self, old: Experiment, new: Experiment, seen: Observation) -> None:
        """Check a change before it is saved."""

    def acts(self, action: Action, seen: Observation) -> None:
        """Check an action before it is carried out."""


@dataclass
class Simulation:
    """A store, a clock and some hosts."""

    hosts: dict[HostName, MemoryExecutor]
    now: datetime = START
    elapsed: float = 0.0  # seconds that really passed; `now` may be set back
    stored: dict[int, Experiment] = field(default_factory=dict)
    open: dict[int, Experiment] = field(default_factory=dict)
    history: dict[int, list[State]] = field(default_factory=dict)
    problems: dict[Action, ActionFailure] = field(default_factory=dict)
    silent_since: dict[HostName, datetime] = field(default_factory=dict)
    seen: dict[HostName, HostObservation] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)  # what tags stood for when a host was last asked
    absent: set[HostName] = field(default_factory=set)  # hosts that are not in the pool now
    busy: list[tuple[Action, Experiment | None]] = field(default_factory=list)
    slow: int = 0  # how many of the next actions stay pending until `finish`
    network: Network = Network.BRIDGE
    shared_output: bool = True
    quiet: dict[JobKey, float] = field(default_factory=dict)  # seconds without a sign of life
    outputs_over: dict[int, str] = field(default_factory=dict)  # ids of experiments with too large outputs, and why
    stalled: dict[int, str] = field(default_factory=dict)  # ids of experiments without progress, and why
    not_finite: dict[int, str] = field(default_factory=dict)  # ids of experiments whose loss is lost, and why
    stuck: dict[JobKey, JobName] = field(default_factory=dict)  # a job, and the one that it waits for
    fetched: set[int] = field(default_factory=set)  # ids of experiments whose data is there
    copied: dict[int, set[HostName]] = field(default_factory=dict)  # hosts with a copy of an experiment's data
    stores_answer: bool = True  # False: what needs a store fails
    store_trouble: str = "there is no bucket"  # why; this one is for good
    saves: dict[int, SaveObservation] = field(default_factory=dict)  # id of an experiment -> its copies
    filled: dict[int, int] = field(default_factory=dict)  # id of an experiment -> the attempt that its output is for
    inherited: dict[int, set[HostName]] = field(default_factory=dict)  # id of a trial -> hosts with its parent's files
    lost_inputs: dict[int, str] = field(default_factory=dict)  # ids of experiments without their inputs, and why
    last_used: dict[int, datetime] = field(default_factory=dict)  # id of a companion -> its last use
    last_signs: dict[JobKey, datetime] = field(default_factory=dict)  # jobs without a recorded end -> their last signs
    team: QuotaRules | None = None  # quotas and usage; None: the server has one user
    witness: Witness = field(default_factory=Witness)
    decide: Callable[[World, Observation], Decision] = decide
    observed: Observation = field(default_factory=lambda: Observation(START, {}))  # what the last pass saw

    def submit(self, experiment: Experiment) -> Experiment:
        """Accept an experiment."""
        self._store(experiment)
        self.history[experiment.id] = [experiment.state]
        return experiment

    def kill(self, identity: int) -> None:
        """Save that a user wants the experiment killed, if it has not ended."""
        found = self.stored[identity]
        if found.ended_at is None:
            self._store(replace(found, wanted=Wanted.KILL, version=found.version + 1))

    def stop(self, identity: int) -> None:
        """Save that a search wants its trial stopped, if it has not ended and no user has killed it."""
        found = self.stored[identity]
        if found.ended_at is None and found.wanted is Wanted.RUN:
            self._store(replace(found, wanted=Wanted.STOP, version=found.version + 1))

    def restart(self) -> None:
        """Forget what a server loses when it dies; the store and the hosts remain."""
        self.problems.clear()
        self.seen.clear()
        self.tags.clear()
        self.silent_since.clear()
        self.busy.clear()
        self.slow = 0

    def world(self) -> World:
        """Return the records of the open experiments."""
        return World(tuple(self.open.values()))

    def observe(self) -> Observation:
        """Return what a pass would see."""
        self.tags.update(list_resolved(self.seen.values()))
        asked = awaited_images(self.world(), tuple(self.tags.items()))
        for name, host in self.hosts.items():
            if name in self.absent:
                self.seen.pop(name, None)
                self.silent_since.pop(name, None)
                continue
            self._set_clock(host)
            try:
                self.seen[name] = host.observe(asked)
                self.silent_since.pop(name, None)
            except RisemlError:
                self.silent_since[name] = min(self.silent_since.get(name, self.now), self.now)
        hosts = {
            name: replace(host, silent_since=self.silent_since[name]) if name in self.silent_since else host
            for name, host in self.seen.items()
        }
        return Observation(
            self.now,
            hosts,
            unseen={name: since for name, since in self.silent_since.items() if name not in self.seen},
            busy=frozenset(action for action, _ in self.busy),
            problems=dict(self.problems),
            lost_after=LOST_AFTER,
            network=self.network,
            shared_output=self.shared_output,
            quiet=dict(self.quiet),
            outputs_over=dict(self.outputs_over),
            not_finite=dict(self.not_finite),
            stalled=dict(self.stalled),
            stuck=dict(self.stuck),
            fetched=frozenset(self.fetched),
            copied={one: frozenset(hosts) for one, hosts in self.copied.items()},
            saves=dict(self.saves),
            inherited=frozenset(one.id for one in self.open.values() if self._has_inherited(one)),
            filled=frozenset(one.id for one in self.open.values() if self.filled.get(one.id) == find_attempt(one)),
            predecessors=self.observe_predecessors(),
            lost_inputs=dict(self.lost_inputs),
            team=self.team,
            last_used=dict(self.last_used),
            last_signs=dict(self.last_signs),
        )

    def observe_predecessors(self) -> dict[Predecessor, PredecessorObservation]:
        """Return the states of what experiments wait for, as the store has them."""
        waited = {predecessor for experiment in self.open.values() for predecessor in experiment.plan.after}
        found = {one: self.stored[one.record] for one in waited if one.record in self.stored}
        return {one: PredecessorObservation(e.state, e.message, e.closed) for one, e in found.items()}

    def turn(self, crash: Callable[[str], None] | None = None, seconds: float = 1.0) -> Decision:
        """Run one pass, `seconds` after the last one; `crash` is called after every step and may raise.

        As in the real loop, a decision is dropped together with its actions when its record changed since the load.
        """
        told = crash or (lambda _: None)
        self.pass_time(seconds)
        self.observed = seen = self.observe()
        world = self.world()
        decision = self.decide(world, seen)
        told("decided")
        dropped: set[int] = set()
        for old, new in changes_to_save(world, decision.world):
            if (dropped and takes_place(old, new)) or not self._save(old, new, seen):
                dropped.add(old.id)
                continue
            told("saved")
        for action in decision.actions:
            if action.owner in dropped:
                continue
            self.witness.acts(action, seen)
            if self.slow:
                self.slow -= 1
                self.busy.append((action, self.stored.get(action.owner)))
            else:
                self.act(action, self.stored.get(action.owner))
            told("acted")
        return decision

    def state(self, identity: int) -> State:
        """Return the saved state of an experiment."""
        return self.stored[identity].state

    def settle(self, turns: int = 12, seconds: float = 1.0) -> None:
        """Run many passes."""
        for _ in range(turns):
            self.turn(seconds=seconds)

    def pass_time(self, seconds: float) -> None:
        """Let time pass, or set the clock back."""
        self.now += timedelta(seconds=seconds)
        self.elapsed += max(0.0, seconds)

    def finish(self, count: int | None = None) -> None:
        """End this many pending actions, the oldest first; without a number all of them."""
        ending = self.busy[:count]
        del self.busy[: len(ending)]
        for action, experiment in ending:
            self.act(action, experiment)

    def act(self, action: Action, experiment: Experiment | None) -> None:
        """Carry an action out, with the record as it was when the action began, and note a failure."""
        try:
            if action.host not in self.absent:
                assert experiment is not None or not isinstance(action, NeedsRecord), "its experiment is stored"
                action.perform(self, experiment)
            self.problems.pop(action, None)
        except RisemlError as error:
            permanent = isinstance(error, EngineError) and error.permanent
            known = self.problems.get(action)
            since, count = (known.since, known.count + 1) if known else (self.now, 1)
            self.problems[action] = ActionFailure(
                error.message,
                permanent,
                since,
                count,
                max(timedelta(), self.now - since),
                subnet_taken=isinstance(error, SubnetTaken),
                image_missing=isinstance(error, ImageMissing),
            )

    def containers(self, identity: int) -> dict[JobName, list[JobKey]]:
        """Return every container of an experiment, on all hosts."""
        found: dict[JobName, list[JobKey]] = {}
        for host in self.hosts.values():
            for key in host.containers:
                if key.experiment == identity:
                    found.setdefault(key.job, []).append(key)
        return found

    def running(self, identity: int | None = None) -> list[JobKey]:
        """Return every job that runs, on all hosts."""
        return [
            key
            for host in self.hosts.values()
            for key, container in host.containers.items()
            if container.running and identity in (None, key.experiment)
        ]

    def exit(self, identity: int, job: str, code: int, *, oom: bool = False) -> None:
        """End one job with an exit code, as if it ended by itself."""
        for host in self.hosts.values():
            for key in list(host.containers):
                if (key.experiment, key.job) == (identity, job) and host.containers[key].running:
                    self._set_clock(host)
                    host.exit(key, code, oom=oom)

    def _set_clock(self, host: MemoryExecutor) -> None:
        host.now = self.now
        host.uptime = self.elapsed

    def _save(self, old: Experiment, new: Experiment, seen: Observation) -> bool:
        """Save a decision; return False when `old` is out of date."""
        if self.stored[old.id].version != old.version:
            return False
        self.witness.saves(old, new, seen)
        if old.state is not new.state:
            self.history[new.id].append(new.state)
        self._store(replace(new, version=old.version + 1))
        return True

    def _store(self, experiment: Experiment) -> None:
        self.stored[experiment.id] = experiment
        if experiment.closed:
            self.open.pop(experiment.id, None)
        else:
            self.open[experiment.id] = experiment

    def find_host(self, name: HostName) -> MemoryExecutor:
        return self.hosts[name]

    def ensure_image(self, action: EnsureImage, experiment: Experiment) -> None:
        order = BuildRequest(choose_image(experiment, action.reference), None, print, Cancellation())
        self.hosts[action.host].ensure_image(order)

    def copy_image(self, action: CopyImage) -> None:
        stream = self.hosts[action.source].export_image(action.reference)
        self.hosts[action.host].import_image(action.reference, stream)

    def cancel_image(self, action: CancelImage) -> None:
        """Nothing: an action of the simulation ends at once."""

    def cancel_data(self, action: CancelData) -> None:
        """Nothing, as `cancel_image`."""

    def cancel_restore(self, action: CancelRestore) -> None:
        """Nothing, as `cancel_image`."""

    def fetch_data(self, action: FetchData, experiment: Experiment) -> None:
        self._use_store()
        self.fetched.add(experiment.id)

    def copy_data(self, action: CopyData, experiment: Experiment) -> None:
        self._use_store()
        self.copied[experiment.id].add(action.host)

    def save_output(self, action: SaveOutput, experiment: Experiment) -> None:
        self._use_store()
        before = self.saves.get(experiment.id, NEVER_SAVED)
        self.saves[experiment.id] = SaveObservation(self.now, max(action.last, before.last))

    def inherit_output(self, action: InheritOutput, experiment: Experiment) -> None:
        self._use_store()
        self.inherited.setdefault(experiment.id, set()).add(action.host)

    def _has_inherited(self, experiment: Experiment) -> bool:
        hosts = self.inherited.get(experiment.id, set())
        first = next((job.host for job in experiment.gang if job.host is not None), None)
        return first in hosts or (self.shared_output and bool(hosts))

    def restore_output(self, action: RestoreOutput, experiment: Experiment) -> None:
        self._use_store()
        self.filled[experiment.id] = action.attempt

    def _use_store(self) -> None:
        if not self.stores_answer:
            raise EngineError(self.store_trouble, permanent=self.store_trouble == "there is no bucket")

    def prepare_host(self, action: PrepareHost, experiment: Experiment) -> None:
        self.hosts[action.host].prepare(HostSetup(experiment.id, action.subnet))

    def start_job(self, action: StartJob, experiment: Experiment) -> None:
        job = next(job for job in experiment.jobs if job.name == action.key.job)
        self.hosts[action.host].start(make_launch(experiment, job, LAUNCH_TARGET), None)

    def start_gang(self, action: StartGang, experiment: Experiment) -> None:
        host = self.hosts[action.host]
        assert isinstance(host, MemoryCluster), "only a cluster starts gangs"
        host.start_gang(make_gang_request(experiment, LAUNCH_TARGET), None)

    def release_host(self, action: ReleaseHost, experiment: Experiment | None) -> None:
        self.hosts[action.host].release(action.experiment)


PARTS = {"master": JobDuty.DECIDES, "train": JobDuty.DECIDES, "ps": JobDuty.SERVES, "tensorboard": JobDuty.WATCHES}
GRACES = {"worker": 10.0, "evaluator": 600.0}


def make_plan(
    *jobs: str, resources: Mapping[str, Resources] | None = None, retry: Retry | None = None, **options: float
) -> Plan:
    """Return a plan with these jobs; the name of a job gives its part."""
    planned = tuple(
        PlannedJob(
            name=JobName(name),
            part=PARTS.get(name.partition(".")[0], JobDuty.HELPS),
            resources=(resources or {}).get(name, Resources(cpus=0.1, mem=64)),
            limits=Limits(),
            run=("true",),
            grace=GRACES.get(name.partition(".")[0], 0.0),
        )
        for name in jobs
    )
    return Plan(
        project="toaster",
        image=Image("base"),
        jobs=planned,
        framework="tensorflow",
        options=(("chief", "chief"), ("version", "2.21.0")),
        policy=RunPolicy(
            retry=retry or Retry(),
            max_duration=options.get("max_duration"),
            idle_timeout=options.get("idle_timeout"),
            stop_grace=options.get("stop_grace", 10.0),
            priority=int(options.get("priority", 0)),
        ),
    )


def change_policy(plan: Plan, **fields: object) -> Plan:
    """Return the plan with other values of its policy."""
    return replace(plan, policy=replace(plan.policy, **fields))  # type: ignore[arg-type]  # fields by name


def make_experiment(identity: int, plan: Plan, **fields: object) -> Experiment:
    """Return a new record of this plan."""
    experiment = Experiment(identity, Owner("paul", 1000, 1000), identity, plan.project, plan, first_jobs(plan), START)
    return replace(experiment, **fields)  # type: ignore[arg-type]  # the fields of the record, by name


def make_simulation(*capacities: Capacity) -> Simulation:
    """Return a simulation with hosts h1, h2, ... of these sizes."""
    hosts = {HostName(f"h{n}"): MemoryExecutor(HostName(f"h{n}"), c) for n, c in enumerate(capacities, start=1)}
    return Simulation(hosts)


def make_pool(**sites: HostObservation) -> Simulation:
    """Return a simulation with these hosts; gangs on several of them use an overlay."""
    return Simulation(make_hosts(**sites), network=Network.OVERLAY)


def make_hosts(**sites: HostObservation) -> dict[HostName, MemoryExecutor]:
    """Return hosts with these names, without any job."""
    return {HostName(name): MemoryExecutor(HostName(name), site.capacity, site) for name, site in sites.items()}


def job_of(simulation: Simulation, identity: int, name: str) -> Job:
    """Return the record of one job."""
    return next(job for job in simulation.stored[identity].jobs if job.name == name)
