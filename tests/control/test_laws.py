"""The laws of DESIGN section 4 over random histories: submit, kill, exits, silences, returns, crashes between save and
act, lost replies, failed starts, removed containers, jumps of the clock. Whatever happened, once it is over everything
converges."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from riseml.model import Capacity
from riseml.names import HostName
from riseml.spec.types import Resources, Retry, RetryScope
from riseml.states import TERMINAL, Part, State
from tests.control.simulation import Crash, Simulation, make_experiment, make_plan, make_simulation

SHAPES = (("train",), ("master", "ps.1"), ("master", "worker.1"), ("master", "worker.1", "worker.2", "ps.1"))
NEED = Resources(cpus=1, mem=64)


class History(RuleBasedStateMachine):
    """One store, two hosts, and everything that can go wrong with them."""

    simulation: Simulation

    @initialize()
    def begin(self) -> None:
        self.simulation = make_simulation(Capacity(4, 8192), Capacity(3, 8192))
        self.kills: dict[int, int] = {}

    @rule(shape=st.sampled_from(SHAPES), retries=st.integers(0, 2), scope=st.sampled_from(RetryScope))
    def submit(self, shape: tuple[str, ...], retries: int, scope: RetryScope) -> None:
        identity = len(self.simulation.stored) + 1
        if identity <= 4:
            plan = make_plan(
                *shape, resources=dict.fromkeys(shape, NEED), retry=Retry(max=retries, scope=scope), stop_grace=3
            )
            self.simulation.submit(make_experiment(identity, plan))

    @rule(data=st.data())
    def kill(self, data: st.DataObject) -> None:
        going = sorted(e.id for e in self.simulation.stored.values() if e.state not in TERMINAL)
        if going:
            identity = data.draw(st.sampled_from(going))
            self.simulation.kill(identity)
            self.kills.setdefault(identity, self._attempt(identity))

    @rule(steps=st.one_of(st.none(), st.integers(0, 6)), seconds=st.sampled_from([0.0, 1.0, 1.0, 5.0, 400.0]))
    def turn(self, steps: int | None, seconds: float) -> None:
        """A pass; the server may die after some steps of it."""
        left = steps

        def crash(_: str) -> None:
            nonlocal left
            if left is not None:
                left -= 1
                if left < 0:
                    raise Crash

        try:
            self.simulation.turn(crash, seconds)
        except Crash:
            self.simulation.restart()

    @rule(data=st.data(), code=st.sampled_from([0, 0, 1, 137]), oom=st.booleans())
    def job_exits(self, data: st.DataObject, code: int, oom: bool) -> None:  # noqa: FBT001  # drawn, not passed
        running = self.simulation.running()
        if running:
            key = data.draw(st.sampled_from(running))
            self.simulation.exit(key.experiment, key.job, code, oom=oom and code != 0)

    @rule(host=st.sampled_from(["h1", "h2"]))
    def fall_silent_or_return(self, host: str) -> None:
        faults = self.simulation.hosts[HostName(host)].faults
        faults.silent = not faults.silent

    @rule(data=st.data())
    def a_kill_meets_a_failure(self, data: st.DataObject) -> None:
        """Somebody kills what is about to be tried again."""
        running = self.simulation.running()
        if running:
            key = data.draw(st.sampled_from(running))
            self.simulation.exit(key.experiment, key.job, 1)
            self.simulation.turn()
            if self.simulation.stored[key.experiment].state not in TERMINAL:
                self.simulation.kill(key.experiment)
                self.kills.setdefault(key.experiment, self._attempt(key.experiment))

    @rule(host=st.sampled_from(["h1", "h2"]))
    def a_host_sleeps_through_the_end(self, host: str) -> None:
        """Everything on a silent host is given up; the host comes back with all of it."""
        faults = self.simulation.hosts[HostName(host)].faults
        faults.silent = True
        self.simulation.settle(3, seconds=400)
        faults.silent = False
        self.simulation.turn()

    @rule(host=st.sampled_from(["h1", "h2"]), fault=st.sampled_from(["lost_replies", "bad_starts"]))
    def fault(self, host: str, fault: str) -> None:
        faults = self.simulation.hosts[HostName(host)].faults
        setattr(faults, fault, getattr(faults, fault) + 1)

    @rule(host=st.sampled_from(["h1", "h2"]))
    def hear_or_not(self, host: str) -> None:
        faults = self.simulation.hosts[HostName(host)].faults
        faults.ignores_term = not faults.ignores_term

    @rule(data=st.data(), host=st.sampled_from(["h1", "h2"]))
    def somebody_removes(self, data: st.DataObject, host: str) -> None:
        containers = self.simulation.hosts[HostName(host)].containers
        if containers:
            del containers[data.draw(st.sampled_from(sorted(containers)))]

    @rule(seconds=st.sampled_from([-3600.0, -5.0]))
    def the_clock_is_set_back(self, seconds: float) -> None:
        self.simulation.turn(seconds=seconds)

    @invariant()
    def terminal_stays_terminal(self) -> None:
        for states in self.simulation.history.values():
            assert not TERMINAL & set(states[:-1]), states

    @invariant()
    def one_container_an_attempt_and_one_attempt_at_a_time(self) -> None:
        for identity in self.simulation.stored:
            keys = [key for keys in self.simulation.containers(identity).values() for key in keys]
            assert len(keys) == len(set(keys)), keys
            reachable = {
                key.attempt
                for host in self.simulation.hosts.values()
                if not host.faults.silent
                for key, container in host.containers.items()
                if key.experiment == identity and container.running
            }
            assert len(reachable) <= 2, reachable

    @invariant()
    def a_gang_is_placed_whole_or_not_at_all(self) -> None:
        for experiment in self.simulation.stored.values():
            gang = [job for job in experiment.jobs if job.part is not Part.PREPARES]
            if experiment.placed_at is not None:
                assert all(job.host is not None for job in gang)
            elif experiment.state not in TERMINAL:
                assert not any(job.host is not None for job in gang)

    @invariant()
    def no_host_holds_more_than_it_can(self) -> None:
        for host in self.simulation.hosts.values():
            records = [
                job
                for experiment in self.simulation.stored.values()
                for job in experiment.jobs
                if job.host == host.name
                and job.part is not Part.PREPARES
                and job.state in (State.STARTING, State.RUNNING)
            ]
            assert sum(job.resources.cpus for job in records) <= host.capacity.cpus

    @invariant()
    def nothing_of_a_finished_experiment_runs_where_we_can_see(self) -> None:
        for experiment in self.simulation.stored.values():
            if experiment.state is State.FINISHED:
                assert all(job.state in TERMINAL for job in experiment.jobs)

    @invariant()
    def a_kill_ends_the_attempts(self) -> None:
        for identity, attempt in self.kills.items():
            assert self._attempt(identity) == attempt

    @invariant()
    def success_was_seen(self) -> None:
        for experiment in self.simulation.stored.values():
            if experiment.state is State.FINISHED:
                deciders = [job for job in experiment.jobs if job.part is Part.DECIDES]
                assert deciders
                assert all(job.exit_code == 0 for job in deciders)

    def teardown(self) -> None:
        """Heal everything, then everything ends."""
        if not hasattr(self, "simulation"):
            return
        simulation = self.simulation
        for host in simulation.hosts.values():
            host.faults = type(host.faults)()
        simulation.settle(12, seconds=5)
        for experiment in simulation.stored.values():
            assert experiment.state in TERMINAL | {State.RUNNING, State.PENDING}, experiment
        self._a_gang_that_fits_runs()
        for identity, experiment in list(simulation.stored.items()):
            if experiment.state not in TERMINAL:
                simulation.kill(identity)
        simulation.settle(12, seconds=5)
        for experiment in simulation.stored.values():
            assert experiment.state in TERMINAL, experiment
            assert experiment.closed, experiment
            assert not simulation.containers(experiment.id)
        for host in simulation.hosts.values():
            assert not host.networks
        writes = [host.writes for host in simulation.hosts.values()]
        decision = simulation.turn()
        assert decision.actions == ()
        assert writes == [host.writes for host in simulation.hosts.values()], "a pass without news writes nothing"

    def _a_gang_that_fits_runs(self) -> None:
        waiting = [e for e in self.simulation.stored.values() if e.state is State.PENDING]
        if waiting:
            assert self.simulation.running(), "nothing runs, and yet something waits"

    def _attempt(self, identity: int) -> int:
        return max(job.attempt for job in self.simulation.stored[identity].jobs)


TestHistory = History.TestCase
TestHistory.settings = settings(
    max_examples=300, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
)
