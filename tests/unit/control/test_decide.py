"""Every ending of an experiment (table in riseml/job_programs/gang_rules.py), as histories against hosts in memory."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from riseml.base.errors import EngineError
from riseml.base.names import HostName
from riseml.base.states import SENTENCES, Reason, State
from riseml.control.actions import StartJob
from riseml.control.rollup import roll_up_set
from riseml.files.archives.project_files import ProjectFiles
from riseml.model import Capacity, ContainerObservation, Launch
from riseml.spec.config.types import NanRule, OnSection, Resources, Retry, RetryOn, RetryScope, StallRule, StallSection
from tests.support.memory_executor import MemoryExecutor
from tests.unit.control.simulation import Simulation, change_policy, job_of, make_experiment, make_plan, make_simulation

GANG = ("master", "worker.1", "worker.2", "ps.1")


@pytest.fixture
def simulation() -> Simulation:
    found = make_simulation(Capacity(8, 8192))
    found.submit(make_experiment(1, make_plan(*GANG)))
    found.settle()
    return found


def test_a_gang_that_fits_runs(simulation: Simulation) -> None:
    assert simulation.state(1) is State.RUNNING
    assert len(simulation.running(1)) == len(GANG)
    assert simulation.history[1] == [State.CREATED, State.BUILDING, State.STARTING, State.RUNNING]


def test_a_master_that_succeeds_finishes_the_experiment(simulation: Simulation) -> None:
    simulation.exit(1, "master", 0)
    simulation.settle(5)
    assert simulation.state(1) is State.RUNNING, "the workers have their grace"
    assert {key.job for key in simulation.running(1)} == {"worker.1", "worker.2", "ps.1"}
    simulation.settle(12)
    assert simulation.state(1) is State.FINISHED
    assert simulation.stored[1].closed
    assert not simulation.containers(1)
    assert not simulation.hosts[HostName("h1")].networks


def test_the_servers_stop_as_soon_as_no_helper_runs(simulation: Simulation) -> None:
    for job in ("master", "worker.1", "worker.2"):
        simulation.exit(1, job, 0)
    simulation.settle(4)
    assert simulation.state(1) is State.FINISHED
    assert job_of(simulation, 1, "ps.1").state is State.FINISHED


@pytest.mark.parametrize("code", [1, 7, 137])
@pytest.mark.parametrize("job", ["master", "worker.1"])
def test_a_job_that_fails_ends_the_experiment(simulation: Simulation, job: str, code: int) -> None:
    simulation.exit(1, job, code)
    simulation.settle(4)
    experiment = simulation.stored[1]
    assert experiment.state is State.FAILED
    assert experiment.verdict is not None
    assert experiment.verdict.job == job
    assert f"exit code {code}" in experiment.message
    assert not simulation.running()
    assert job_of(simulation, 1, "ps.1").reason is Reason.CASCADE


@pytest.mark.parametrize("code", [0, 1])
def test_a_server_that_ends_early_fails_the_experiment(simulation: Simulation, code: int) -> None:
    simulation.exit(1, "ps.1", code)
    simulation.settle(4)
    assert simulation.state(1) is State.FAILED
    assert simulation.stored[1].reason is Reason.SERVICE_ENDED


def test_the_first_cause_is_kept_apart_from_its_cascade(simulation: Simulation) -> None:
    simulation.exit(1, "worker.2", 3)
    simulation.turn()
    simulation.exit(1, "master", 1)
    simulation.settle(4)
    assert simulation.stored[1].verdict is not None
    assert simulation.stored[1].verdict.job == "worker.2"


def test_out_of_memory_is_the_reason(simulation: Simulation) -> None:
    simulation.exit(1, "worker.1", 137, oom=True)
    simulation.settle(4)
    assert simulation.stored[1].reason is Reason.OUT_OF_MEMORY
    assert simulation.stored[1].message == "exit code 137 (SIGKILL), out of memory"


def test_a_helper_that_succeeds_changes_nothing(simulation: Simulation) -> None:
    simulation.exit(1, "worker.1", 0)
    simulation.settle(4)
    assert simulation.state(1) is State.RUNNING
    assert len(simulation.running(1)) == 3


def test_a_kill_ends_every_job(simulation: Simulation) -> None:
    simulation.kill(1)
    simulation.settle(4)
    assert simulation.state(1) is State.KILLED
    assert not simulation.containers(1)


def test_a_job_that_ignores_sigterm_is_killed_after_its_grace(simulation: Simulation) -> None:
    simulation.hosts[HostName("h1")].faults.ignores_term = True
    simulation.kill(1)
    simulation.settle(9)
    assert simulation.state(1) is State.RUNNING, "it is not over while something runs"
    simulation.settle(5)
    assert simulation.state(1) is State.KILLED
    assert job_of(simulation, 1, "master").exit_code == 137


def test_a_trial_that_is_stopped_early_is_killed_within_a_second(simulation: Simulation) -> None:
    """Whatever `stop_grace` says, and also when its program ignores SIGTERM."""
    simulation.hosts[HostName("h1")].faults.ignores_term = True
    simulation.stop(1)
    decision = simulation.decide(simulation.world(), simulation.observe())
    assert decision.wake_at is not None
    assert decision.wake_at - simulation.now < timedelta(seconds=1), "the loop wakes up for it"
    simulation.settle(3)
    stopped = simulation.stored[1]
    assert (stopped.state, stopped.reason) == (State.FINISHED, Reason.STOPPED_EARLY)
    assert stopped.plan.policy.stop_grace == 10


def test_an_output_that_is_too_large_ends_its_experiment_for_good() -> None:
    """Without another attempt, and however long its jobs would like to go on writing."""
    simulation = make_simulation(Capacity(8, 8192))
    retry = Retry(max=3, on=frozenset(RetryOn))
    for identity in (1, 2):
        simulation.submit(make_experiment(identity, make_plan("train", retry=retry, stop_grace=3600.0)))
    simulation.settle(5)
    simulation.hosts[HostName("h1")].faults.ignores_term = True
    simulation.outputs_over = {1: "its output takes 2.0 GiB, and RISEML_OUTPUT_LIMIT allows 1.0 GiB"}
    simulation.settle(6, seconds=6)
    ended = simulation.stored[1]
    assert (ended.state, ended.reason, ended.message) == (
        State.FAILED,
        Reason.OUTPUT_LIMIT,
        simulation.outputs_over[1],
    )
    assert job_of(simulation, 1, "train").exit_code == 137
    assert simulation.state(2) is State.RUNNING


@pytest.mark.parametrize(
    ("rule", "state", "reason", "jobs"),
    [
        (NanRule.REMARK, State.RUNNING, Reason.RUNNING, {State.RUNNING}),
        (NanRule.STOP, State.FINISHED, Reason.NOT_FINITE, {State.FINISHED}),
        (NanRule.FAIL, State.FAILED, Reason.NOT_FINITE, {State.KILLED}),
    ],
)
def test_a_loss_that_is_lost_ends_its_experiment_as_its_rule_says(
    rule: NanRule, state: State, reason: Reason, jobs: set[State]
) -> None:
    """The whole gang, without another attempt, and the metric that is finite again later changes nothing."""
    simulation = make_simulation(Capacity(8, 8192))
    retry = Retry(max=3, on=frozenset(RetryOn))
    plan = change_policy(make_plan(*GANG, retry=retry), on=OnSection(rule))
    for identity in (1, 2):
        simulation.submit(make_experiment(identity, plan))
    simulation.settle(5)
    simulation.not_finite = {1: "loss is nan at step 7"}
    simulation.settle(1)
    simulation.not_finite = {}
    simulation.settle(6, seconds=6)
    ended = simulation.stored[1]
    sentence = "" if rule is NanRule.REMARK else "loss is nan at step 7"
    assert (ended.state, ended.reason, ended.message) == (state, reason, sentence)
    assert {job.state for job in ended.gang} == jobs
    assert {job.attempt for job in ended.gang} == {1}
    assert ended.closed is (rule is not NanRule.REMARK)
    assert simulation.state(2) is State.RUNNING


@pytest.mark.parametrize(
    ("rule", "most", "state", "attempt"),
    [
        (StallRule.REMARK, 2, State.RUNNING, 1),
        (StallRule.DUMP, 2, State.RUNNING, 1),
        (StallRule.FAIL, 2, State.FAILED, 1),
        (StallRule.RETRY, 1, State.RUNNING, 2),
        (StallRule.RETRY, 0, State.FAILED, 1),
    ],
)
def test_a_run_without_progress_ends_or_starts_again_as_its_rule_says(
    rule: StallRule, most: int, state: State, attempt: int
) -> None:
    """The whole gang; the attempt after the last one that `retry` allows is the end."""
    simulation = make_simulation(Capacity(8, 8192))
    plan = change_policy(make_plan(*GANG, retry=Retry(max=most)), stall=StallSection(None, rule))
    simulation.submit(make_experiment(1, plan))
    simulation.settle(5)
    simulation.stalled = {1: "no sign of progress for 12 m"}
    simulation.settle(1)
    simulation.stalled = {}
    simulation.settle(8, seconds=6)
    after = simulation.stored[1]
    assert (after.state, {job.attempt for job in after.gang}) == (state, {attempt})
    assert (after.reason is Reason.STALLED) is (state is State.FAILED)
    assert state is not State.FAILED or after.message == "no sign of progress for 12 m"


def test_a_job_that_has_failed_before_is_the_cause_and_not_its_lost_loss() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    simulation.submit(make_experiment(1, change_policy(make_plan("train"), on=OnSection(NanRule.STOP))))
    simulation.settle(5)
    simulation.exit(1, "train", 3)
    simulation.not_finite = {1: "loss is nan at step 7"}
    simulation.settle(3)
    assert simulation.stored[1].reason is Reason.EXIT_CODE


def test_a_kill_before_any_job_started_ends_the_experiment() -> None:
    simulation = make_simulation()
    simulation.submit(make_experiment(1, make_plan("train")))
    simulation.kill(1)
    simulation.settle(2)
    assert simulation.state(1) is State.KILLED
    assert simulation.stored[1].closed


def test_a_start_that_fails_ends_the_gang() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    simulation.hosts[HostName("h1")].faults.bad_starts = 1
    simulation.submit(make_experiment(1, make_plan(*GANG)))
    simulation.settle()
    assert simulation.state(1) is State.FAILED
    assert simulation.stored[1].reason is Reason.START_FAILED
    assert not simulation.containers(1)


def test_a_container_that_is_removed_from_outside_fails_its_experiment(simulation: Simulation) -> None:
    host = simulation.hosts[HostName("h1")]
    del host.containers[next(key for key in host.containers if key.job == "worker.1")]
    simulation.settle(4)
    assert simulation.stored[1].reason is Reason.VANISHED
    assert not simulation.running()


def test_a_silent_host_is_not_lost(simulation: Simulation) -> None:
    host = simulation.hosts[HostName("h1")]
    host.faults.silent = True
    writes = host.writes
    simulation.settle(10, seconds=20)
    assert simulation.state(1) is State.RUNNING
    assert host.writes == writes, "no action on a silent host"
    host.faults.silent = False
    simulation.settle(2)
    assert simulation.state(1) is State.RUNNING


def test_a_host_that_stays_silent_is_lost_and_cleaned_when_it_returns(simulation: Simulation) -> None:
    host = simulation.hosts[HostName("h1")]
    host.faults.silent = True
    simulation.settle(20, seconds=20)
    assert simulation.state(1) is State.FAILED
    assert simulation.stored[1].reason is Reason.HOST_LOST
    host.faults.silent = False
    simulation.settle(3)
    assert not simulation.containers(1)
    assert not host.networks


def test_max_duration_ends_an_experiment() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    simulation.submit(make_experiment(1, make_plan("train", max_duration=60)))
    simulation.settle(5)
    assert simulation.state(1) is State.RUNNING
    simulation.settle(8, seconds=10)
    ended = simulation.stored[1]
    assert (ended.reason, ended.message) == (Reason.MAX_DURATION, "it reached max_duration of 60 s")
    job = job_of(simulation, 1, "train")
    assert (job.reason, SENTENCES[job.reason]) == (Reason.CASCADE, "Stopped: this attempt of the experiment failed")
    assert not simulation.running()


def test_a_host_whose_clock_is_behind_does_not_end_a_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = make_simulation(Capacity(8, 8192))
    original = MemoryExecutor.start

    def start(host: MemoryExecutor, launch: Launch, code: ProjectFiles | None) -> None:
        original(host, launch, code)
        found = host.containers[launch.key]
        host.containers[launch.key] = replace(found, started_at=simulation.now - timedelta(hours=2))

    monkeypatch.setattr(MemoryExecutor, "start", start)
    simulation.submit(make_experiment(1, make_plan("train", max_duration=60)))
    simulation.settle(5)
    assert simulation.state(1) is State.RUNNING
    simulation.settle(8, seconds=10)
    assert simulation.stored[1].reason is Reason.MAX_DURATION


def test_a_retry_restarts_the_whole_gang() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    simulation.submit(make_experiment(1, make_plan(*GANG, retry=Retry(max=1))))
    simulation.settle()
    simulation.exit(1, "worker.1", 1)
    simulation.settle(8)
    assert {key.attempt for key in simulation.running(1)} == {2}
    assert simulation.state(1) is State.RUNNING
    simulation.exit(1, "worker.1", 1)
    simulation.settle(8)
    assert simulation.state(1) is State.FAILED


def test_the_log_of_an_earlier_attempt_is_read_before_its_container_is_removed() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    simulation.submit(make_experiment(1, make_plan("train", retry=Retry(max=1))))
    simulation.settle()
    simulation.exit(1, "train", 1)
    host = simulation.hosts[HostName("h1")]
    ((key, found),) = host.containers.items()
    host.containers[key] = replace(found, drained=False)
    simulation.settle(8)
    assert {key.attempt for key in host.containers} == {1, 2}
    host.containers[key] = found
    simulation.settle(2)
    assert {key.attempt for key in host.containers} == {2}


@pytest.mark.parametrize("killed", [True, False])
def test_a_container_that_is_made_but_cannot_be_started_ends_its_job(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch, *, killed: bool
) -> None:
    host = simulation.hosts[HostName("h1")]

    def start(launch: Launch, code: object) -> None:
        host.containers.setdefault(launch.key, ContainerObservation(launch.key, "id", started=False))
        raise EngineError("no space left on device")

    monkeypatch.setattr(host, "start", start)
    simulation.submit(make_experiment(2, make_plan("train")))
    simulation.settle(20)
    assert simulation.state(2) is State.STARTING
    if killed:
        simulation.kill(2)
    simulation.settle(5 if killed else 400)
    assert simulation.state(2) is (State.KILLED if killed else State.FAILED)
    simulation.settle(5)
    assert simulation.stored[2].closed


def test_retry_of_a_role_leaves_the_others_alone() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    retry = Retry(max=1, scope=RetryScope.ROLE)
    simulation.submit(make_experiment(1, make_plan(*GANG, retry=retry)))
    simulation.settle()
    place = job_of(simulation, 1, "worker.1").address
    simulation.exit(1, "worker.1", 1)
    simulation.settle(6)
    attempts = {str(key.job): key.attempt for key in simulation.running(1)}
    assert attempts == {"master": 1, "worker.1": 2, "worker.2": 1, "ps.1": 1}
    assert job_of(simulation, 1, "worker.1").address == place
    simulation.exit(1, "worker.1", 1)
    simulation.settle(6)
    assert simulation.state(1) is State.FAILED
    assert simulation.stored[1].verdict is not None
    assert simulation.stored[1].verdict.job == "worker.1"
    assert not simulation.containers(1)


def test_out_of_memory_is_not_retried_by_default() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    simulation.submit(make_experiment(1, make_plan("train", retry=Retry(max=3))))
    simulation.settle()
    simulation.exit(1, "train", 137, oom=True)
    simulation.settle(4)
    assert simulation.state(1) is State.FAILED
    simulation.submit(make_experiment(2, make_plan("train", retry=Retry(3, frozenset({RetryOn.OUT_OF_MEMORY})))))
    simulation.settle()
    simulation.exit(2, "train", 137, oom=True)
    simulation.settle(4)
    assert simulation.state(2) is State.RUNNING


def test_a_kill_ends_retrying() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    simulation.hosts[HostName("h1")].faults.ignores_term = True
    simulation.submit(make_experiment(1, make_plan("master", "worker.1", retry=Retry(max=9))))
    simulation.settle()
    simulation.exit(1, "worker.1", 1)
    simulation.turn()
    simulation.kill(1)
    simulation.settle(15)
    assert simulation.state(1) is State.KILLED


def test_a_taken_subnet_is_replaced() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    simulation.hosts[HostName("h1")].faults.taken_subnets.add("10.213.0.0/26")
    simulation.submit(make_experiment(1, make_plan(*GANG)))
    simulation.settle()
    assert simulation.state(1) is State.RUNNING
    assert simulation.stored[1].subnet == "10.213.0.64/26"
    assert job_of(simulation, 1, "master").address == "10.213.0.66"


def test_a_gang_is_placed_whole_or_not_at_all() -> None:
    simulation = make_simulation(Capacity(3, 8192), Capacity(3, 8192))
    need = {name: Resources(cpus=2, mem=64) for name in GANG}
    simulation.submit(make_experiment(1, make_plan(*GANG, resources=need)))
    simulation.settle(5)
    assert simulation.state(1) is State.PENDING
    assert simulation.stored[1].reason is Reason.NO_ROOM
    assert not simulation.containers(1)


def test_two_gangs_that_each_need_most_of_the_pool_run_one_after_the_other() -> None:
    simulation = make_simulation(Capacity(10, 8192))
    need = {name: Resources(cpus=3, mem=64) for name in ("master", "worker.1")}
    for identity in (1, 2):
        simulation.submit(make_experiment(identity, make_plan("master", "worker.1", resources=need)))
    simulation.settle()
    assert simulation.state(1) is State.RUNNING
    assert simulation.state(2) is State.PENDING
    for job in ("master", "worker.1"):
        simulation.exit(1, job, 0)
    simulation.settle()
    assert simulation.stored[1].closed
    assert simulation.state(2) is State.RUNNING


def test_a_set_keeps_its_concurrency() -> None:
    simulation = make_simulation(Capacity(10, 8192))
    for identity in (1, 2, 3):
        member = make_experiment(identity, make_plan("train"), number=7, sub=identity, set_id=1, concurrency=2)
        simulation.submit(member)
    simulation.settle()
    assert len(simulation.running()) == 2
    assert simulation.stored[3].reason is Reason.CONCURRENCY
    simulation.exit(1, "train", 1)
    simulation.settle()
    assert simulation.state(3) is State.RUNNING
    assert roll_up_set(list(simulation.stored.values()))[0] is State.RUNNING


def test_a_paused_set_starts_nothing_further_and_what_has_begun_goes_on_with_its_retries() -> None:
    simulation = make_simulation(Capacity(10, 8192))
    plan = make_plan("train", retry=Retry(max=1))
    begun, waiting = (
        make_experiment(identity, plan, number=7, sub=identity, set_id=1, paused=True) for identity in (1, 2)
    )
    simulation.submit(replace(begun, paused=False))
    simulation.settle()
    simulation.submit(replace(simulation.stored[1], paused=True))
    simulation.submit(waiting)
    simulation.submit(make_experiment(3, make_plan("train")))
    simulation.exit(1, "train", 1)
    simulation.settle()
    assert [simulation.state(identity) for identity in (1, 2, 3)] == [State.RUNNING, State.PENDING, State.RUNNING]
    assert (simulation.stored[2].reason, simulation.stored[1].jobs[-1].attempt) == (Reason.PAUSED, 2)
    simulation.submit(replace(simulation.stored[2], paused=False, concurrency=2))
    simulation.settle()
    assert simulation.state(2) is State.RUNNING


def test_an_orphan_is_removed(simulation: Simulation) -> None:
    other = make_simulation(Capacity(8, 8192))
    other.hosts = simulation.hosts
    other.settle(3)
    assert not simulation.running()


def test_a_pass_without_news_does_nothing(simulation: Simulation) -> None:
    before = dict(simulation.stored)
    decision = simulation.turn()
    assert decision.actions == ()
    assert simulation.stored == before


def test_a_job_whose_start_had_no_reply_is_not_started_twice() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    host = simulation.hosts[HostName("h1")]
    simulation.submit(make_experiment(1, make_plan(*GANG)))
    simulation.turn()
    host.faults.lost_replies = 3
    simulation.settle()
    assert simulation.state(1) is State.RUNNING
    assert len(simulation.running(1)) == len(GANG)
    starts = [launch.key for launch in host.launches]
    assert len(starts) == len(set(starts)), "no job is started twice"


def test_equal_actions_are_the_same_action(simulation: Simulation) -> None:
    key = simulation.running(1)[0]
    assert StartJob(HostName("h1"), key) == StartJob(HostName("h1"), key)
