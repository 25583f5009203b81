"""The control loop: wait, load, observe, decide, save, act. Events make a pass start early; no pass needs them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from riseml.base.errors import LogUnreadable, RisemlError, StoreError
from riseml.base.faultpoints import Point, reach
from riseml.base.names import HostName, JobName
from riseml.base.states import TERMINAL, JobDuty, Reason, State
from riseml.control.actions import EnsureImage
from riseml.control.decide import Decision, changes_to_save, decide, takes_place
from riseml.control.images import awaited_images, list_resolved
from riseml.control.observation import Observation
from riseml.control.search_steps import may_take_step
from riseml.executors.base import Executor
from riseml.executors.pool import HostPool
from riseml.frameworks.roles import is_waiting_for, list_awaited, says_that_it_waits
from riseml.model import Experiment, HostObservation, Job, JobKey, Resolved, World
from riseml.planning.launch import job_addresses
from riseml.server.clock import now
from riseml.server.hosts.observe import make_observation
from riseml.server.log_line import write_line
from riseml.server.predecessor_states import find_lost_inputs, observe_predecessors
from riseml.server.reconcile.decision_log import describe_hosts, describe_pass, describe_swarm
from riseml.server.reconcile.last_signs import LastSigns
from riseml.server.reconcile.lost_losses import find_not_finite
from riseml.server.reconcile.run_times import RunTimes
from riseml.server.reconcile.wake import Wake
from riseml.server.services import Services
from riseml.store.logs.log_store import LogStore

_IDLE_POLL = 30.0  # seconds between two passes when no experiment is open
_SILENT_POLL = 5.0  # seconds between two passes when no experiment is open and a host does not answer
_EVENTS_PAUSE = 5.0  # seconds between two attempts to reach a host
_MOST_TAGS = 256  # tags whose resolved images are remembered

log = logging.getLogger(__name__)


class ControlLoop(threading.Thread):
    """The control loop; a server has one. It calls `note_end` when an experiment has ended."""

    def __init__(self, services: Services, note_end: Callable[[], None]) -> None:
        super().__init__(name="loop", daemon=True)
        self._services = services
        self._note_end = note_end
        self._stopping = threading.Event()
        self._stuck = StuckWaits(services.stores.logs)
        self._run_times = RunTimes()
        self._signs = LastSigns(services.watchers.samples.store, services.stores.logs)
        self._listeners = ChangeListeners(services.hosts.pool, services.loops.wake, self._stopping)
        self._tags: dict[str, str] = {}  # the last resolved image of each tag, the newest last

    def run(self) -> None:
        self._listeners.listen_to(tuple(self._services.hosts.pool.executors.values()))
        pause = 0.0
        while not self._stopping.is_set():
            self._services.loops.wake.wait(pause)
            with self._services.watchers.timings.passes.measure():
                pause = self._try_pass()
            self._services.loops.passes.complete_pass()

    def stop(self) -> None:
        """End the loop after the present pass; jobs run on."""
        self._stopping.set()
        self._services.loops.wake.set()
        if self.is_alive():
            self.join(timeout=self._services.settings.poll * 2)

    def _try_pass(self) -> float:
        """Run one pass, and return the seconds until the next one at the latest. Nothing ends the loop."""
        try:
            pause = self._run_pass()
        except StoreError as error:
            problem = f"{error.message}; {error.hint}" if error.hint else error.message
            if self._services.loops.passes.problem != problem:  # log it once, not in every pass
                log.warning("nothing can be decided: %s", problem)
            self._services.loops.passes.problem = problem
        except Exception:
            log.exception("a pass of the loop failed; the next one follows")
        else:
            if self._services.loops.passes.problem:
                log.info("the store answers again")
            self._services.loops.passes.problem = ""
            return pause
        return self._services.settings.poll

    def _run_pass(self) -> float:
        services = self._services
        # check again in each pass: two servers must never act on the same hosts
        services.stores.experiments.confirm_sole_server()
        world = services.stores.experiments.load_world()
        if services.team is not None:
            services.team.meter.measure_when_due()
        services.loops.secrets.note_world(world)
        services.data.disks.look()  # where the disk of the store is full, this pass ends with its first save
        self._listeners.listen_to(services.hosts.refresh(world))
        observation = replace(self._observe(world), last_used=self._read_last_uses(world))
        decision = decide_isolated(world, observation)
        refused = self._save(world, decision.world, observation)
        open_experiments = {experiment.id: experiment for experiment in decision.world.experiments}
        actions = tuple(action for action in decision.actions if action.owner not in refused)
        services.loops.tracker.start_actions(actions, open_experiments)
        builds = (action for action in (*observation.busy, *actions) if isinstance(action, EnsureImage))
        services.data.disks.note(frozenset((action.host, action.reference) for action in builds))
        # An action that is decided on without a record, such as a release, needs its pause between two attempts, too.
        owners = {action.owner for action in decision.actions}
        services.loops.tracker.forget_experiments_except(frozenset(open_experiments) | owners)
        services.watchers.samples.watch_jobs(decision.world)
        services.stores.logs.close_all_but(frozenset(open_experiments))
        self._end_unwanted_builds(decision.world)
        is_erased = services.stores.experiments.finish_erasing()
        if refused:
            return 0.0
        if world.experiments:
            services.loops.passes.active_at = observation.now
        return self._choose_pause(decision, observation, active=bool(world.experiments) or not is_erased)

    def _read_last_uses(self, world: World) -> Mapping[int, datetime]:
        companions = frozenset(
            experiment.id for experiment in world.experiments if experiment.plan.companion is not None
        )
        return self._services.watchers.attendance.read_last_uses(companions, now())

    def _observe(self, world: World) -> Observation:
        """Ask every host, follow the logs of its containers, and publish the observation."""
        services = self._services
        # List the pending actions before asking the hosts: the answers may not show actions that end now.
        pending = services.loops.tracker.list_pending(services.hosts.pool.list_late())
        moment = now()
        with services.watchers.timings.host_answers.measure():
            hosts = services.hosts.pool.observe_hosts(awaited_images(world, tuple(self._tags.items())), moment)
        self._note_tags(list_resolved(hosts.values()))
        building = {action.reference for action in pending if isinstance(action, EnsureImage)}
        hosts = {name: _mark_builds(self._follow_logs(name, host), building) for name, host in hosts.items()}
        hosts = self._run_times.measure(world, hosts, moment)
        present = {container.id for host in hosts.values() for container in host.containers.values()}
        services.loops.pump.drop_followers(frozenset(present))
        services.watchers.progress.drop_jobs(services.loops.pump.list_followed())
        predecessors = observe_predecessors(world, services.stores)
        observation = replace(
            make_observation(services.hosts, services.stores.drained, hosts, moment),
            predecessors=predecessors,
            lost_inputs=find_lost_inputs(world, predecessors, services.hosts),
            busy=pending,
            problems=services.loops.tracker.list_failures(moment),
            team=None if services.team is None else services.team.ledger.read_rules(world.experiments, moment),
            quiet=services.watchers.idle.find_quiet(world),
            outputs_over=services.data.outputs.find_over(world),
            not_finite=find_not_finite(world, services.stores.metrics.peek_not_finite),
            stalled=services.watchers.stalls.find_stalled(world, hosts),
            stuck=self._stuck.find(world),
            last_signs=self._signs.find(world, hosts, moment),
            fetched=services.data.fetcher.find_fetched(world),
            copied=services.data.fetcher.find_copied(world),
            saves=services.data.saver.find_saves(world),
            filled=services.data.saver.find_filled(world),
            inherited=services.data.saver.find_inherited(world),
        )
        before = services.loops.passes.observation
        for line in (
            *describe_hosts({} if before is None else before.hosts, observation),
            *describe_swarm(before, observation),
        ):
            write_line(log, line)
        services.loops.passes.observation = observation
        services.watchers.swarm.note(observation)
        return observation

    def _end_unwanted_builds(self, world: World) -> None:
        """End the builds that an earlier server left and that no experiment waits for any more, and its removals."""
        references = awaited_images(world)

        def list_used() -> frozenset[str]:
            return frozenset(image.reference for experiment in world.experiments for image in experiment.images)

        for executor in self._services.hosts.pool.executors.values():
            if executor.capabilities.builds is not None:
                executor.capabilities.builds.end_unwanted_builds(references, list_used)

    def _note_tags(self, tags: Resolved) -> None:
        """Remember the resolved tags, as a guess for the next pass, which asks the hosts again."""
        for base, resolved in tags:
            self._tags.pop(base, None)
            self._tags[base] = resolved
        while len(self._tags) > _MOST_TAGS:
            del self._tags[next(iter(self._tags))]

    def _follow_logs(self, name: HostName, host: HostObservation) -> HostObservation:
        """Follow the log of every container of a host, and mark those whose whole log is stored."""
        pump = self._services.loops.pump
        executor = self._services.hosts.pool.executors[name]
        containers = {}
        for key, container in host.containers.items():
            is_drained = pump.follow_container(executor, container)
            drained = is_drained and not container.running
            shell = pump.find_shell(container)
            error = self._services.loops.secrets.mask_text(key.experiment, container.error)
            containers[key] = replace(container, drained=drained, shell=shell, error=error)
        return replace(host, containers=containers)

    def _save(self, before: World, after: World, observation: Observation) -> frozenset[int]:
        """Save the changes and log them. Return the ids of the experiments whose decision is stale and was dropped.

        After the first stale decision no experiment takes a place in this pass: the decision may have freed that room.
        """
        services = self._services
        refused: set[int] = set()
        saved: list[tuple[Experiment, Experiment]] = []
        for old, new in changes_to_save(before, after):
            is_stale = bool(refused) and takes_place(old, new)
            _reach_before_save(old, new)
            if is_stale or not services.stores.experiments.save_decision(old, new, observation.now):
                refused.add(old.id)
                continue
            _reach_after_save(old, new)
            saved.append((old, new))
            if services.team is not None:
                services.team.ledger.note_saved(old, new, observation.now)
            if new.state in TERMINAL:
                self._note_end()
            if takes_place(old, new):
                services.watchers.timings.queue_waits.observe((observation.now - new.created_at).total_seconds())
            services.loops.notifier.publish_records(new.id)
            if may_take_step(old, new):
                services.loops.search_wake.set()
            if new.closed:
                services.stores.logs.end_open_lines(new.id)
                services.stores.logs.close_experiment(new.id)
                services.watchers.metrics.note_closed(new.id)
                services.watchers.samples.close_experiment(new.id)
                if services.loops.secrets.erase_run(new.id):
                    services.stores.experiments.note_erasing()
        for line in describe_pass(before, saved, observation.team):
            write_line(log, line)
        return frozenset(refused)

    def _choose_pause(self, decision: Decision, observation: Observation, *, active: bool) -> float:
        """Return the seconds until the next pass when nothing wakes the loop."""
        silent = any(host.silent_since is not None for host in observation.hosts.values())
        longest = self._services.settings.poll if active else _SILENT_POLL if silent else _IDLE_POLL
        settles = [host.settles_in for host in observation.hosts.values() if host.silent_since is None]
        longest = min([longest, *(seconds for seconds in settles if seconds is not None)])
        if decision.wake_at is None:
            return longest
        return min(longest, max(0.0, (decision.wake_at - now()).total_seconds()))


class ChangeListeners:
    """Wakes the loop after a change on a host; without this class the loop notices changes later.

    Each host has one thread, for as long as it is in the pool.

    Args:
        pool: the hosts that are in force.
        wake: set at every change.
        stopping: set when the server ends.
    """

    def __init__(self, pool: HostPool, wake: Wake, stopping: threading.Event) -> None:
        self._pool = pool
        self._wake = wake
        self._stopping = stopping

    def listen_to(self, executors: tuple[Executor, ...]) -> None:
        """Start a thread for each of these hosts."""
        for executor in executors:
            name = f"changes-{executor.name}"
            threading.Thread(target=self._listen_to_host, args=(executor,), name=name, daemon=True).start()

    def _listen_to_host(self, executor: Executor) -> None:
        problem: str | None = None  # why the last attempt ended, logged once
        while self._is_in_force(executor):
            try:
                for _ in executor.changes():
                    problem = None
                    self._wake.set()
                    if not self._is_in_force(executor):
                        return
            except RisemlError as error:
                if problem != error.message:
                    log.info("host %s sends no events: %s", executor.name, error.message)
                problem = error.message
            except Exception:
                log.exception("the events of host %s cannot be read", executor.name)
            self._stopping.wait(_EVENTS_PAUSE)

    def _is_in_force(self, executor: Executor) -> bool:
        return not self._stopping.is_set() and self._pool.executors.get(executor.name) is executor


class StuckWaits:
    """Finds jobs that wait (`after`) for a job which has ended: the loop ends their experiments.

    A job writes into its log which job it waits for, and when the wait is over. The server has no other source: it does
    not see the connections of jobs. It reads only the logs of experiments in which a role has ended that others may
    still wait for.

    Args:
        logs: of all jobs.
    """

    def __init__(self, logs: LogStore) -> None:
        self._logs = logs
        self._begun: set[JobKey] = set()  # jobs that have printed a line after their wait, so that the wait is over

    def find(self, world: World) -> dict[JobKey, JobName]:
        """Return the jobs whose last line says that they wait for a job which has ended, with its name."""
        candidates = {
            experiment.key_of(job): (experiment, job, ended)
            for experiment in world.experiments
            for job, ended in _list_candidates(experiment)
        }
        self._begun &= candidates.keys()
        peers = {key: self._find_peer(*candidate) for key, candidate in candidates.items() if key not in self._begun}
        return {key: peer for key, peer in peers.items() if peer is not None}

    def _find_peer(self, experiment: Experiment, job: Job, ended: list[JobName]) -> JobName | None:
        try:
            lines = self._logs.read_last_lines(experiment.key_of(job), 1)
        except LogUnreadable:  # the follower of the job says so; the loop goes on with everything else
            lines = []
        if not lines:
            return None
        last = lines[-1].text.decode("utf-8", "replace")
        addresses = job_addresses(experiment)
        if not says_that_it_waits(last):
            self._begun.add(experiment.key_of(job))
        waits = (peer for peer in ended if is_waiting_for(experiment.plan, job.name, peer, addresses[peer], last))
        return next(waits, None)


def decide_isolated(world: World, observation: Observation) -> Decision:
    """Return the decision, which one broken record cannot stop: an experiment that raises in `decide` ends alone, as
    FAILED with the reason INTERNAL.
    """
    try:
        return decide(world, observation)
    except Exception:
        log.exception("decide failed; the server tries each experiment alone")
    healthy = World(tuple(experiment for experiment in world.experiments if _is_decidable(experiment, observation)))
    decision = decide(healthy, observation)
    decided = {experiment.id: experiment for experiment in decision.world.experiments}
    after = tuple(
        decided.get(experiment.id) or _fail_experiment(experiment, observation.now) for experiment in world.experiments
    )
    return replace(decision, world=World(after))


def _list_candidates(experiment: Experiment) -> Iterator[tuple[Job, list[JobName]]]:
    """Yield the jobs that run and may wait for a job that has ended."""
    ended = {job.name for job in experiment.gang if job.state is State.FINISHED}
    if not ended or experiment.verdict is not None:
        return
    for job in experiment.gang:
        awaited = [] if job.state is not State.RUNNING else list_awaited(experiment.plan, job.name)
        over = [name for name in awaited if name in ended]
        if over:
            yield job, over


def _is_decidable(experiment: Experiment, observation: Observation) -> bool:
    try:
        decide(World((experiment,)), observation)
    except Exception:
        log.exception("experiment %s cannot be decided on", experiment.id)
        return False
    return True


def _fail_experiment(experiment: Experiment, moment: datetime) -> Experiment:
    if experiment.state in TERMINAL:
        return replace(experiment, closed=True)
    jobs = tuple(
        job if job.state in TERMINAL else replace(job, state=State.KILLED, reason=Reason.INTERNAL, ended_at=moment)
        for job in experiment.jobs
    )
    return replace(experiment, jobs=jobs, state=State.FAILED, reason=Reason.INTERNAL, ended_at=moment)


def _mark_builds(host: HostObservation, building: set[str]) -> HostObservation:
    """Mark the environments that this server is making now."""
    images = {reference: replace(image, building=reference in building) for reference, image in host.images.items()}
    return replace(host, images=images)


def _reach_before_save(old: Experiment, new: Experiment) -> None:
    reach(Point.SAVING)
    if new.state is State.RUNNING and old.state is not State.RUNNING:
        reach(Point.RUNNING_SEEN)
    if any(job.exit_code is not None and job.part is not JobDuty.PREPARES for job in new.jobs) and new.jobs != old.jobs:
        reach(Point.END_SEEN)


def _reach_after_save(old: Experiment, new: Experiment) -> None:
    reach(Point.SAVED)
    if takes_place(old, new):
        reach(Point.PLACED)
    if new.verdict is not None and old.verdict is None:
        reach(Point.VERDICT_SAVED)
