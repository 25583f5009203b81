"""The only loop: wait, load, observe, decide, save, act. Correctness never needs an event; events make it quick."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, replace
from datetime import datetime

from riseml.control.actions import EnsureImage, owner_of
from riseml.control.decide import Decision, changes_to_save, decide, takes_place
from riseml.control.images import awaited_images
from riseml.control.observation import Observation
from riseml.errors import RisemlError, StoreError
from riseml.executors.base import Executor
from riseml.faultpoints import Point, reach
from riseml.model import Experiment, HostSeen, World
from riseml.names import HostName
from riseml.server.clock import now
from riseml.server.pool.observe import make_observation
from riseml.server.services import Services
from riseml.states import TERMINAL, Part, Reason, State

_IDLE_POLL = 30.0  # seconds between two passes when no experiment is open
_RECONNECT = 5.0  # seconds between two attempts to reach a host that does not answer

log = logging.getLogger(__name__)


class Loop(threading.Thread):
    """The control loop; one a server."""

    def __init__(self, services: Services) -> None:
        super().__init__(name="loop", daemon=True)
        self._services = services
        self._stopping = threading.Event()

    def run(self) -> None:
        self._listen_to(tuple(self._services.hosts.pool.executors.values()))
        pause = 0.0
        while not self._stopping.is_set():
            self._services.wake.wait(pause)
            try:
                pause = self._turn()
            except StoreError as error:
                log.warning("nothing can be decided: %s (%s)", error.message, error.hint)
                pause = self._services.settings.poll
            except Exception:
                log.exception("a pass of the loop failed; the next one follows")
                pause = self._services.settings.poll
            self._services.passes.complete_pass()

    def stop(self) -> None:
        """End the loop after the pass that is under way; jobs run on."""
        self._stopping.set()
        self._services.wake.set()
        if self.is_alive():
            self.join(timeout=self._services.settings.poll * 2)

    def _turn(self) -> float:
        """One pass; the seconds until the next one at the latest."""
        services = self._services
        services.experiments.confirm_sole_server()  # what another server does to the hosts must not be done by two
        world = services.experiments.load_world()
        self._listen_to(services.hosts.refresh(world))
        seen = services.passes.observation = self._observe(world)
        decision = _decide(world, seen)
        saved = self._save(world, decision.world, seen.now)
        known = {experiment.id: experiment for experiment in decision.world.experiments}
        actions = tuple(action for action in decision.actions if owner_of(action) not in saved.refused)
        services.tracker.begin(actions, known)
        services.tracker.forget(frozenset(known))
        services.logs.close_all_but(frozenset(known))
        if saved.refused:
            return 0.0
        if world.experiments:
            services.passes.active_at = seen.now
        return self._pause(decision, seen, active=bool(world.experiments))

    def _observe(self, world: World) -> Observation:
        services = self._services
        busy = services.tracker.busy()  # before the look: what ends during it may not be in it
        moment = now()
        hosts = services.hosts.pool.observe_hosts(awaited_images(world), moment)
        present: set[str] = set()
        for name, host in hosts.items():
            hosts[name] = self._with_logs(name, host)
            present |= {container.id for container in host.containers.values()}
        services.pump.drop_followers(frozenset(present))
        building = {action.reference for action in busy if isinstance(action, EnsureImage)}
        hosts = {name: _with_builds(host, building) for name, host in hosts.items()}
        return replace(
            make_observation(services.hosts, services.drained, hosts, moment),
            busy=busy,
            problems=services.tracker.problems(moment),
        )

    def _with_logs(self, name: HostName, host: HostSeen) -> HostSeen:
        executor = self._services.hosts.pool.executors[name]
        containers = {
            key: replace(
                container, drained=self._services.pump.follow_container(executor, container) and not container.running
            )
            for key, container in host.containers.items()
        }
        return replace(host, containers=containers)

    def _save(self, before: World, after: World, moment: datetime) -> _Saved:
        refused: set[int] = set()
        for old, new in changes_to_save(before, after):
            stale = bool(refused) and takes_place(old, new)  # its room may be another one's whose change was dropped
            _reach_before(old, new)
            if stale or not self._services.experiments.save_decision(old, new, moment):
                refused.add(old.id)
                continue
            _reach_after(old, new)
            self._services.notifier.publish_records(new.id)
            if new.closed:
                self._services.logs.close_experiment(new.id)
        return _Saved(frozenset(refused))

    def _pause(self, decision: Decision, seen: Observation, *, active: bool) -> float:
        silent = any(host.silent_since is not None for host in seen.hosts.values())
        longest = self._services.settings.poll if active else _RECONNECT if silent else _IDLE_POLL
        settles = [host.settles_in for host in seen.hosts.values() if host.silent_since is None]
        longest = min([longest, *(seconds for seconds in settles if seconds is not None)])
        if decision.wake_at is None:
            return longest
        return min(longest, max(0.0, (decision.wake_at - now()).total_seconds()))

    def _listen_to(self, executors: tuple[Executor, ...]) -> None:
        for executor in executors:
            threading.Thread(target=self._listen, args=(executor,), name=f"news-{executor.name}", daemon=True).start()

    def _listen(self, executor: Executor) -> None:
        """Wake the loop at news of a host, for as long as it is in the pool."""
        pool = self._services.hosts.pool
        while not self._stopping.is_set() and pool.executors.get(executor.name) is executor:
            try:
                for _ in executor.changes():
                    self._services.wake.set()
                    if pool.executors.get(executor.name) is not executor:
                        return
            except RisemlError as error:
                log.info("no news from host %s: %s", executor.name, error.message)
            except Exception:
                log.exception("news from host %s cannot be read", executor.name)
            self._stopping.wait(_RECONNECT)


@dataclass(frozen=True, slots=True)
class _Saved:
    """Whose decision was out of date and is dropped."""

    refused: frozenset[int]


def _decide(world: World, seen: Observation) -> Decision:
    """The decision; one experiment that cannot be decided on fails alone."""
    try:
        return decide(world, seen)
    except Exception:
        log.exception("an experiment cannot be decided on; each is tried alone")
    healthy = World(tuple(experiment for experiment in world.experiments if _is_sound(experiment, seen)))
    decision = decide(healthy, seen)
    decided = {experiment.id: experiment for experiment in decision.world.experiments}
    after = tuple(decided.get(experiment.id) or _poisoned(experiment, seen.now) for experiment in world.experiments)
    return replace(decision, world=World(after))


def _is_sound(experiment: Experiment, seen: Observation) -> bool:
    try:
        decide(World((experiment,)), seen)
    except Exception:
        log.exception("experiment %s cannot be decided on", experiment.id)
        return False
    return True


def _poisoned(experiment: Experiment, moment: datetime) -> Experiment:
    if experiment.state in TERMINAL:
        return replace(experiment, closed=True)
    jobs = tuple(
        job if job.state in TERMINAL else replace(job, state=State.KILLED, reason=Reason.INTERNAL, ended_at=moment)
        for job in experiment.jobs
    )
    return replace(experiment, jobs=jobs, state=State.FAILED, reason=Reason.INTERNAL, ended_at=moment)


def _reach_before(old: Experiment, new: Experiment) -> None:
    reach(Point.SAVING)
    if new.state is State.RUNNING and old.state is not State.RUNNING:
        reach(Point.RUNNING_SEEN)
    if any(job.exit_code is not None and job.part is not Part.PREPARES for job in new.jobs) and new.jobs != old.jobs:
        reach(Point.END_SEEN)


def _reach_after(old: Experiment, new: Experiment) -> None:
    reach(Point.SAVED)
    if takes_place(old, new):
        reach(Point.PLACED)
    if new.verdict is not None and old.verdict is None:
        reach(Point.VERDICT_SAVED)


def _with_builds(host: HostSeen, building: set[str]) -> HostSeen:
    images = {reference: replace(image, building=reference in building) for reference, image in host.images.items()}
    return replace(host, images=images)
