"""Random histories, on which the laws are checked.

A history has submits, kills, exits, hosts that fall silent, leave and come back, crashes between save and action,
actions that end late, lost replies, failed starts, deleted images, tags that move, logs that are read late, jumps of
the clock, notifications that are lost or come twice, and kills in the middle of a pass. At the end every fault is
removed; then everything converges, and every experiment gets its turn.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from riseml.base.names import HostName
from riseml.base.states import TERMINAL, Network
from riseml.control.actions import Action
from riseml.control.decide import Decision, decide
from riseml.model import Capacity, Experiment, Gpu, HostObservation, Image, Lineage, Plan, Predecessor
from riseml.spec.config.types import NanRule, OnSection, Resources, Retry, RetryScope, SaveSection
from tests.support.memory_executor import MemoryExecutor
from tests.unit.control.laws import Laws, count_attempts
from tests.unit.control.simulation import (
    Crash,
    Simulation,
    Witness,
    change_policy,
    make_experiment,
    make_hosts,
    make_plan,
)
from tests.unit.control.steps import choice, flag, integer, rule, several, shuffled

CPU = Resources(cpus=1, mem=64)
GPU = Resources(cpus=1, mem=64, gpus=1)
T4 = replace(GPU, gpu="t4")
NAMES = ("h1", "h2", "h3")
SHAPES: tuple[dict[str, Resources], ...] = (
    {"train": CPU},
    {"train": GPU},
    {"train": GPU},
    {"train": Resources(cpus=1, mem=64, labels=(("disk", "fast"),))},
    {"master": GPU, "ps.1": Resources(cpus=1, mem=64, labels=(("disk", "fast"),))},
    {"master": CPU, "ps.1": CPU},
    {"master": CPU, "worker.1": CPU, "worker.2": CPU, "ps.1": CPU},
    {"master": GPU, "worker.1": GPU, "ps.1": CPU},
    {"master": Resources(cpus=2, mem=64), "worker.1": Resources(cpus=2, mem=64), "ps.1": CPU},
    {"master": GPU, "worker.1": GPU, "worker.2": GPU, "worker.3": GPU},
    {"train": T4},
    {"master": T4, "ps.1": CPU},
)
_ONE = Predecessor(1, "paul", 1)
WAITS = {"end": replace(_ONE, accepts_any_end=True), "success": _ONE, "output": replace(_ONE, has_input=True)}
"""What a later experiment may want of the one before it."""
MOST = 5
QUIET = 24
"""Passes without news after which the loop must be at rest."""

WAKE_UPS = choice(1, 1, 1, 0, 2)
"""How often a notification wakes the loop: it may be lost, and it may come twice."""


A100 = Gpu("", "", "NVIDIA A100-SXM4-40GB", 40960)
TESLA_T4 = Gpu("", "", "Tesla T4", 15360)


def _know(gpu: Gpu, ids: str) -> dict[str, Gpu]:
    """Return devices of one model, by these ids."""
    return {identity: replace(gpu, id=identity) for identity in ids}


class History:
    """One store, three hosts of which two are in a swarm, and every fault that can happen to them."""

    simulation: Simulation
    laws: Laws

    def make_simulation(self, hosts: dict[HostName, MemoryExecutor]) -> Simulation:
        """Return the simulation that keeps the records."""
        return Simulation(hosts)

    @rule(
        managers=choice(1, 1, 2),
        network=choice(*[Network.OVERLAY] * 3, Network.HOST),
        shapes=several(integer(0, len(SHAPES) - 1), 2, 2),
    )
    def begin(self, managers: int, network: Network, shapes: list[int]) -> None:
        """Two experiments run or wait before the first fault."""
        hosts = make_hosts(
            h1=HostObservation(
                Capacity(4, 8192, ("a", "b", "c")),
                swarm="s",
                manager=True,
                address="10.0.0.1",
                devices=_know(A100, "abc"),
            ),
            h2=HostObservation(
                Capacity(3, 8192, ("d",)),
                swarm="s",
                manager=managers > 1,
                address="10.0.0.2",
                labels={"disk": "fast"},
                devices=_know(TESLA_T4, "d"),
            ),
            h3=HostObservation(Capacity(3, 8192), address="10.0.0.3", labels={"disk": "fast"}),
        )
        self.simulation = self.make_simulation(hosts)
        self.simulation.network = network
        for host in self.simulation.hosts.values():
            host.drains = False
        self.laws = Laws(self.simulation)
        self.simulation.witness = self.laws
        for shape, role in zip(shapes, (False, True), strict=True):
            self._submit(shape, 1, "paul", role=role)
        for _ in range(4):
            self._turn()

    @rule(
        shape=integer(0, len(SHAPES) - 1),
        retries=choice(0, 1, 2),
        role=flag(),
        user=choice("paul", "anna"),
        waits=choice(None, None, None, None, *WAITS),
    )
    def submit(self, shape: int, retries: int, role: bool, user: str, waits: str | None) -> None:  # noqa: FBT001  # drawn, not passed
        self._submit(shape, retries, user, role=role, waits=waits)
        self._turn()

    def _submit(self, shape: int, retries: int, user: str, *, role: bool, waits: str | None = None) -> None:
        identity = len(self.simulation.stored) + 1
        if identity <= MOST:
            needs = SHAPES[shape]
            retry = Retry(max=retries, scope=RetryScope.ROLE if role else RetryScope.EXPERIMENT)
            plan = make_plan(*needs, resources=needs, retry=retry, stop_grace=3, priority=identity == 4)
            if identity % 3 == 0:
                plan = change_policy(plan, idle_timeout=60.0)
            if identity % 2 == 0:
                plan = replace(plan, image=Image("base", ("pip install a",), (), "ab" * 32))
            if identity % 3 == 1:
                plan = replace(plan, role_images=(("worker", Image("other", ("pip install b",), (), "cd" * 32)),))
            if identity % 2:
                plan = change_policy(plan, save=SaveSection("s3://runs", every=3.0, restore=identity > 1))
            if waits is not None:
                before = replace(WAITS[waits], record=identity - 1, number=identity - 1)
                plan = replace(plan, after=(before,))
            plan = change_policy(plan, on=OnSection(nan=list(NanRule)[identity % 3]))
            if identity in (2, 3):
                plan = replace(plan, lineage=Lineage(2, parent=1, parent_record=1))
            self.simulation.submit(self.make_experiment_of(user, identity, plan))

    def make_experiment_of(self, user: str, identity: int, plan: Plan) -> Experiment:
        """Return the experiment that a user submits."""
        experiment = make_experiment(identity, plan)
        return replace(experiment, owner=replace(experiment.owner, user=user, uid=1000, gid=1000))

    @rule(pick=integer(0, 99), wake_ups=WAKE_UPS)
    def kill(self, pick: int, wake_ups: int) -> None:
        going = [e.id for e in self.simulation.open.values() if e.state not in TERMINAL]
        if going:
            self._kill(going[pick % len(going)])
        self._wake(wake_ups)

    @rule(pick=integer(0, 99), wake_ups=WAKE_UPS)
    def stop_a_trial(self, pick: int, wake_ups: int) -> None:
        """A search stops a trial: as after a kill, no further attempt follows."""
        going = [e.id for e in self.simulation.open.values() if e.state not in TERMINAL]
        for identity in going[pick % (len(going) or 1) :][:1]:
            self.simulation.stop(identity)
            self.laws.killed.setdefault(identity, count_attempts(self.simulation, identity))
        self._wake(wake_ups)

    @rule(pick=integer(0, 99), wake_ups=WAKE_UPS)
    def a_loss_is_lost(self, pick: int, wake_ups: int) -> None:
        """An experiment whose riseml.yml wants its end then ends; another one goes on."""
        running = sorted({key.experiment for key in self.simulation.running()})
        for identity in running[pick % (len(running) or 1) :][:1]:
            self.simulation.not_finite[identity] = "loss is nan"
        self._wake(wake_ups)

    @rule(quiet=several(choice(0.0, 59.0, 60.0, 60.0, 60.0), 1, 4))
    def jobs_are_quiet_or_not(self, quiet: list[float]) -> None:
        keys = [key for host in self.simulation.hosts.values() for key in host.containers]
        self.simulation.quiet = {key: quiet[number % len(quiet)] for number, key in enumerate(keys)}
        self._turn()
        self.simulation.quiet = {}

    @rule(seconds=choice(0.0, 1.0, 1.0, 5.0, 400.0), slow=choice(0, 0, 1, 3))
    def turn(self, seconds: float, slow: int) -> None:
        self.simulation.slow = slow
        self._turn(seconds)

    @rule(steps=integer(0, 8), seconds=choice(0.0, 1.0, 400.0), late=flag())
    def crash(self, steps: int, seconds: float, late: bool) -> None:  # noqa: FBT001  # drawn, not passed
        """The server dies after some steps of a pass; the pending actions still happen, or do not."""
        left = steps

        def die(_: str) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Crash

        with suppress(Crash):  # without one the pass was shorter than `steps`
            self.simulation.turn(die, seconds)
        if late:
            self.simulation.finish()
        self.simulation.restart()
        self.laws.check()

    @rule(count=integer(1, 4))
    def pending_actions_end(self, count: int) -> None:
        self.simulation.finish(count)
        self._turn()

    @rule(pick=integer(0, 99), code=choice(0, 0, 1, 137), read=flag(), wake_ups=WAKE_UPS)
    def job_exits(self, pick: int, code: int, read: bool, wake_ups: int) -> None:  # noqa: FBT001  # drawn, not passed
        running = self.simulation.running()
        if running:
            key = running[pick % len(running)]
            self.simulation.exit(key.experiment, key.job, code, oom=code == 137)
        if read:
            self._drain()
        self._wake(wake_ups)

    @rule(pick=integer(0, 99), codes=shuffled(0, 1, 0, 1))
    def all_of_a_gang_end_unnoticed(self, pick: int, codes: list[int]) -> None:
        """The jobs of a gang exit one after the other, and one pass sees all exits: the first exit counts."""
        running = self.simulation.running()
        if running:
            gang = self.simulation.running(running[pick % len(running)].experiment)
            for key, code in zip(sorted(gang, reverse=bool(pick % 2)), codes, strict=False):
                self.simulation.exit(key.experiment, key.job, code)
                self.simulation.pass_time(1.0)
        self._turn()

    @rule()
    def logs_are_read(self) -> None:
        self._drain()
        self._turn()

    @rule(name=choice(*NAMES), wake_ups=WAKE_UPS)
    def fall_silent_or_return(self, name: str, wake_ups: int) -> None:
        faults = self.simulation.hosts[HostName(name)].faults
        faults.silent = not faults.silent
        self._note_dark(name)
        self._wake(wake_ups)

    @rule(name=choice(*NAMES), wake_ups=WAKE_UPS)
    def answer_late_or_in_time(self, name: str, wake_ups: int) -> None:
        """A host lists its jobs, and does not say how they are, as to a server that has just started."""
        faults = self.simulation.hosts[HostName(name)].faults
        faults.late = not faults.late
        self._wake(wake_ups)

    @rule()
    def nothing_new(self) -> None:
        """15, I15: passes without news come to rest in every state of the hosts: no save, and no action that was not
        decided before (the action tracker of the server holds back actions that are pending or failed).
        """
        self.simulation.slow = 0
        self.simulation.finish()
        asked: frozenset[Action] = frozenset()
        for _ in range(QUIET):
            before = self.simulation.stored.copy()
            actions = frozenset(self._turn(0.1).actions)
            if actions <= asked and before == self.simulation.stored:
                return
            asked = actions
        raise AssertionError(f"15, I15: not at rest: {actions}")

    @rule(name=choice(*NAMES))
    def leave_the_pool_or_return(self, name: str) -> None:
        self.simulation.absent ^= {HostName(name)}
        self._note_dark(name)
        self._turn()

    @rule(
        name=choice(*NAMES),
        leave=flag(),
        turns=choice(2, 3, 5),
        slow=choice(0, 1, 3),
    )
    def a_host_is_away_for_long(self, name: str, *, leave: bool, turns: int, slow: int) -> None:
        """A host is away until its jobs are given up, and comes back with all of them."""
        fresh = name not in self.laws.dark_since
        for away in (True, False):
            if leave:
                (self.simulation.absent.add if away else self.simulation.absent.discard)(HostName(name))
            else:
                self.simulation.hosts[HostName(name)].faults.silent = away
            self._note_dark(name)
            self.simulation.slow = 0 if away else slow
            for _ in range(turns if away else 4):
                self._turn(400.0 if away else 1.0)
            if away and fresh:
                self.laws.check_lost(HostName(name))

    @rule(name=choice(*NAMES))
    def drain_or_resume(self, name: str) -> None:
        host = self.simulation.hosts[HostName(name)]
        host.site = replace(host.site, taking=not host.site.taking)
        self._turn()

    @rule(names=choice(("h1",), ("h1", "h2")))
    def the_swarm_loses_its_leader_or_finds_one(self, names: tuple[str, ...]) -> None:
        for name in names:
            host = self.simulation.hosts[HostName(name)]
            host.site = replace(host.site, leaderless=host.site.manager and not host.site.leaderless)
        self._turn()

    @rule(pick=integer(0, 99), code=choice(0, 1, 1), slow=choice(0, 3, 5))
    def an_end_meets_a_kill(self, pick: int, code: int, slow: int) -> None:
        """A user kills an experiment that is about to finish or to be retried."""
        running = self.simulation.running()
        self.simulation.slow = slow
        if running:
            key = running[pick % len(running)]
            self.simulation.exit(key.experiment, key.job, code)
            self._turn()
            if self.simulation.stored[key.experiment].state not in TERMINAL:
                self._kill(key.experiment)
        self._turn()

    @rule(pick=integer(0, 99), code=choice(0, 1, 1))
    def a_kill_comes_during_a_pass(self, pick: int, code: int) -> None:
        """A user kills an experiment between the load and the save of a pass: the save is refused."""
        running = self.simulation.running()
        key = running[pick % len(running)] if running else None
        if key is not None:
            self.simulation.exit(key.experiment, key.job, code)

        def interfere(step: str) -> None:
            found = None if key is None else self.simulation.open.get(key.experiment)
            if step == "decided" and found is not None and found.state not in TERMINAL:
                self._kill(found.id)

        self.simulation.turn(interfere)
        self.laws.check()

    @rule(name=choice(*NAMES), fault=choice("lost_replies", "bad_starts"))
    def fault(self, name: str, fault: str) -> None:
        faults = self.simulation.hosts[HostName(name)].faults
        setattr(faults, fault, getattr(faults, fault) + 1)
        self._turn()

    @rule(name=choice(*NAMES))
    def ignore_sigterm_or_not(self, name: str) -> None:
        faults = self.simulation.hosts[HostName(name)].faults
        faults.ignores_term = not faults.ignores_term
        self._turn()

    @rule(pick=integer(0, 99), name=choice(*NAMES))
    def something_else_removes_a_container(self, pick: int, name: str) -> None:
        containers = self.simulation.hosts[HostName(name)].containers
        if containers:
            del containers[sorted(containers)[pick % len(containers)]]
        self._turn()

    @rule(names=choice(("h1",), ("h2",), NAMES))
    def something_else_deletes_the_image(self, names: tuple[str, ...]) -> None:
        for name in names:
            self.simulation.hosts[HostName(name)].images.clear()
        self._turn()

    @rule(name=choice(*NAMES), number=choice(1, 2, 3))
    def something_else_moves_the_tag(self, name: str, number: int) -> None:
        self.simulation.hosts[HostName(name)].move_tag("base", number)
        self._turn()

    @rule(seconds=choice(-3600.0, -5.0))
    def the_clock_is_set_back(self, seconds: float) -> None:
        self._turn(seconds)

    def teardown(self) -> None:
        """Remove every fault; then every experiment gets its turn and ends."""
        self._remove_faults()
        self._give_every_experiment_its_turn()
        simulation = self.simulation
        for identity, experiment in simulation.stored.items():
            assert experiment.state in TERMINAL, f"12, I1: {experiment}"
            assert experiment.closed, f"6: {experiment}"
            assert not simulation.containers(identity), "6, 8, I3, I6"
        assert not any(host.networks for host in simulation.hosts.values()), "I13"
        writes = [host.writes for host in simulation.hosts.values()]
        assert simulation.turn().actions == (), "15, I15"
        assert writes == [host.writes for host in simulation.hosts.values()]
        simulation.witness = Witness()  # no cycle is left: a process with many histories needs no garbage collector

    def _remove_faults(self) -> None:
        simulation = self.simulation
        simulation.absent.clear()
        self.laws.dark_since.clear()
        for host in simulation.hosts.values():
            host.faults = type(host.faults)()
            host.drains = True
            host.site = replace(host.site, taking=True, leaderless=False)
        simulation.slow = 0
        simulation.finish()

    def _give_every_experiment_its_turn(self) -> None:
        """7: no experiment that fits waits forever: each run ends, and then the next one gets its turn."""
        simulation = self.simulation
        for _ in range(4 * MOST):
            self._drain()
            for _ in range(3):
                self._turn(4.0)
            if not simulation.open:
                return
            observation, world = simulation.observe(), simulation.world()
            assert decide(world, observation) == decide(world, observation), "1: pure"
            for key in simulation.running():
                simulation.exit(key.experiment, key.job, 0)
        assert not simulation.open, [(e.id, e.state, e.reason, e.message) for e in simulation.open.values()]

    def _wake(self, times: int) -> None:
        """Wake the loop this often; a pass that follows sees what a lost notification announced."""
        if not times:
            self.simulation.pass_time(1.0)
        for turn in range(times):
            self._turn(0.0 if turn else 1.0)

    def _turn(self, seconds: float = 1.0) -> Decision:
        decision = self.simulation.turn(seconds=seconds)
        self.laws.check()
        self.laws.check_no_host_idles(decision.world, self.simulation.observed)
        return decision

    def _kill(self, identity: int) -> None:
        self.simulation.kill(identity)
        self.laws.killed.setdefault(identity, count_attempts(self.simulation, identity))

    def _drain(self) -> None:
        for host in self.simulation.hosts.values():
            if not host.faults.silent:
                for key in host.containers:
                    host.drain(key)

    def _note_dark(self, name: str) -> None:
        host = self.simulation.hosts[HostName(name)]
        if host.faults.silent or host.name in self.simulation.absent:
            self.laws.dark_since.setdefault(host.name, self.simulation.elapsed)
        else:
            self.laws.dark_since.pop(host.name, None)
