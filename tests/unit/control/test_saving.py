"""When outputs are saved and restored: a store that is away delays copies and ends, and no job."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from riseml.base.names import HostName
from riseml.base.states import Reason, State
from riseml.control.actions import Action, CancelRestore, InheritOutput, RestoreOutput, SaveOutput, StartJob
from riseml.control.observation import Observation, SaveObservation
from riseml.control.saving import GIVE_UP_BEFORE_RETRY, GIVE_UP_SAVING
from riseml.model import Capacity, Lineage, Plan
from riseml.spec.config.types import Retry, SaveSection
from tests.unit.control.simulation import (
    START,
    Simulation,
    Witness,
    change_policy,
    make_experiment,
    make_plan,
    make_simulation,
)

H1, H2 = HostName("h1"), HostName("h2")
AWAY = "the store answers 503"


def make_saving_plan(**changes: object) -> Plan:
    plan = make_plan("master", retry=Retry(max=1))
    section = replace(SaveSection("s3://runs", every=60.0), **changes)  # type: ignore[arg-type]  # fields by name
    return change_policy(plan, save=section)


class SaveWitness(Witness):
    """Notes every copy, and sees that no job starts before its output is filled."""

    def __init__(self) -> None:
        self.acted: list[Action] = []
        self.restores = False

    def acts(self, action: Action, seen: Observation) -> None:
        if isinstance(action, SaveOutput | RestoreOutput | InheritOutput):
            self.acted.append(action)
        if isinstance(action, StartJob) and self.restores:
            assert action.key.experiment in seen.filled


def run(simulation: Simulation, plan: Plan) -> SaveWitness:
    """Submit an experiment, and return what sees it, once its job runs."""
    witness = simulation.witness = SaveWitness()
    witness.restores = plan.policy.save is not None and plan.policy.save.restore
    for host in simulation.hosts.values():
        host.images.add("base")
    simulation.submit(make_experiment(1, plan))
    simulation.settle(6)
    assert simulation.state(1) is State.RUNNING
    return witness


def test_a_copy_begins_as_often_as_the_file_says_and_once_more_at_the_end() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    witness = run(simulation, make_saving_plan())
    simulation.settle(50)
    assert witness.acted == []
    simulation.settle(100)
    assert witness.acted == [SaveOutput(H1, 1, 0)] * 2
    simulation.exit(1, "master", 0)
    simulation.settle()
    assert (simulation.state(1), simulation.stored[1].closed) == (State.FINISHED, True)
    assert witness.acted[2:] == [SaveOutput(H1, 1, 1)]


def test_copies_go_on_when_the_clock_was_set_back() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    witness = run(simulation, make_saving_plan())
    simulation.now -= timedelta(days=1)
    simulation.settle(4)
    assert witness.acted == [SaveOutput(H1, 1, 0)]
    simulation.settle(2, 60.0)
    assert witness.acted == [SaveOutput(H1, 1, 0)] * 3


def test_the_last_copy_comes_after_everything_that_is_written_into_the_output() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    witness = run(simulation, make_saving_plan())
    simulation.hosts[H1].drains = False  # its log is not read yet: the container stays
    simulation.exit(1, "master", 0)
    simulation.settle()
    assert (simulation.state(1), witness.acted) == (State.FINISHED, [])
    simulation.hosts[H1].drains = True
    for container in simulation.hosts[H1].containers.values():
        simulation.hosts[H1].containers[container.key] = replace(container, drained=True)
    simulation.settle()
    assert (witness.acted, simulation.stored[1].closed) == ([SaveOutput(H1, 1, 1)], True)


def test_a_store_that_is_away_holds_up_no_job_and_the_end_for_a_time() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    simulation.store_trouble, simulation.stores_answer = AWAY, False
    run(simulation, make_saving_plan())
    simulation.settle(100)
    simulation.exit(1, "master", 0)
    simulation.settle(20)
    assert (simulation.state(1), simulation.stored[1].closed) == (State.FINISHED, False)
    simulation.settle(10, GIVE_UP_SAVING.total_seconds() / 5)
    assert simulation.stored[1].closed


def test_the_end_waits_as_long_as_something_arrives() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    simulation.store_trouble, simulation.stores_answer = AWAY, False
    run(simulation, make_saving_plan())
    simulation.exit(1, "master", 0)
    for _ in range(10):
        simulation.saves[1] = SaveObservation(moved_at=simulation.now)
        simulation.settle(2, GIVE_UP_SAVING.total_seconds() / 3)
    assert not simulation.stored[1].closed
    simulation.stores_answer = True
    simulation.settle(3)
    assert simulation.stored[1].closed


def test_a_store_that_refuses_is_not_asked_again_at_the_end() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    simulation.stores_answer = False
    run(simulation, make_saving_plan())
    simulation.exit(1, "master", 0)
    simulation.settle()
    assert (simulation.state(1), simulation.stored[1].closed) == (State.FINISHED, True)


def test_a_user_gives_the_last_copy_up() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    simulation.store_trouble, simulation.stores_answer = AWAY, False
    run(simulation, make_saving_plan())
    simulation.exit(1, "master", 0)
    simulation.settle(20)
    assert not simulation.stored[1].closed
    simulation.saves[1] = SaveObservation(given_up=1)
    simulation.settle(2)
    assert (simulation.state(1), simulation.stored[1].closed) == (State.FINISHED, True)


def test_what_never_ran_saves_nothing() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    witness = simulation.witness = SaveWitness()
    simulation.submit(make_experiment(1, make_saving_plan()))
    simulation.kill(1)
    simulation.settle()
    assert (simulation.stored[1].closed, witness.acted) == (True, [])


def test_a_killed_experiment_is_saved_too() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    witness = run(simulation, make_saving_plan())
    simulation.kill(1)
    simulation.settle(20)
    assert (simulation.state(1), simulation.stored[1].closed) == (State.KILLED, True)
    assert witness.acted == [SaveOutput(H1, 1, 1)]


def test_an_output_is_filled_before_the_jobs_of_each_attempt_start() -> None:
    simulation = make_simulation(Capacity(8, 8192), Capacity(8, 8192))
    simulation.shared_output = False
    witness = run(simulation, make_saving_plan(restore=True))
    assert [type(one) for one in witness.acted] == [RestoreOutput]
    host = next(job.host for job in simulation.stored[1].gang)
    simulation.exit(1, "master", 3)
    simulation.settle(4)
    simulation.settle(6)
    second = next(job for job in simulation.stored[1].gang)
    assert (second.attempt, second.state) == (2, State.RUNNING)
    assert second.host is not None
    assert witness.acted[1:] == [SaveOutput(host or H1, 1, 1), RestoreOutput(second.host, 1, 2)]


CHILD = Lineage(2, parent=3, parent_record=3)


def test_a_trial_gets_the_files_of_its_parent_once_and_before_what_it_has_saved() -> None:
    simulation = make_simulation(Capacity(8, 8192), Capacity(8, 8192))
    simulation.shared_output = False
    witness = run(simulation, replace(make_saving_plan(restore=True), lineage=CHILD))
    first = simulation.stored[1].gang[0].host or H1
    assert witness.acted == [InheritOutput(first, 1, 3), RestoreOutput(first, 1, 1)]
    simulation.hosts[first].faults.silent = True  # the next attempt is on the other host, which has none of its files
    simulation.settle(30, 60.0)
    second = simulation.stored[1].gang[0].host or H1
    assert second != first
    assert witness.acted[2:4] == [InheritOutput(second, 1, 3), RestoreOutput(second, 1, 2)]


@pytest.mark.parametrize("ends", [True, False])
def test_another_attempt_goes_on_with_its_own_files(*, ends: bool) -> None:
    simulation = make_simulation(Capacity(8, 8192))
    witness = run(simulation, replace(make_plan("master", retry=Retry(max=1)), lineage=CHILD))
    if ends:
        simulation.exit(1, "master", 3)
    else:
        simulation.restart()
    simulation.settle()
    assert simulation.state(1) is State.RUNNING
    assert witness.acted == [InheritOutput(H1, 1, 3)]


def test_a_trial_whose_parent_has_no_files_fails_and_a_killed_one_ends_the_copy() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    simulation.hosts[H1].images.add("base")
    simulation.stores_answer = False
    simulation.submit(make_experiment(1, replace(make_plan("master"), lineage=CHILD)))
    simulation.settle()
    job = simulation.stored[1].gang[0]
    assert (simulation.state(1), job.reason, job.message) == (State.FAILED, Reason.START_FAILED, "there is no bucket")
    simulation.submit(make_experiment(2, replace(make_plan("master"), lineage=CHILD)))
    copy = InheritOutput(H1, 2, 3)
    while copy not in simulation.turn().actions:
        simulation.slow = 1
    simulation.kill(2)
    assert CancelRestore(H1, 2) in (*simulation.turn().actions, *simulation.turn().actions)
    simulation.finish()
    simulation.settle()
    assert (simulation.state(2), simulation.stored[2].closed) == (State.KILLED, True)


def test_another_attempt_waits_for_the_last_copy_a_minute_at_most() -> None:
    simulation = make_simulation(Capacity(8, 8192), Capacity(8, 8192))
    simulation.shared_output = False
    run(simulation, make_saving_plan(restore=True))
    simulation.store_trouble, simulation.stores_answer = AWAY, False
    simulation.exit(1, "master", 3)
    simulation.settle(20)
    assert simulation.stored[1].gang[0].attempt == 1
    simulation.settle(3, GIVE_UP_BEFORE_RETRY.total_seconds())
    assert simulation.stored[1].gang[0].attempt == 2


def test_another_attempt_waits_for_no_copy_where_it_finds_the_output() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    run(simulation, make_saving_plan(restore=True))
    simulation.store_trouble, simulation.stores_answer = AWAY, False
    simulation.exit(1, "master", 3)
    simulation.settle(2)
    assert simulation.stored[1].gang[0].attempt == 2


def test_an_output_is_not_copied_while_it_is_filled() -> None:
    """It lacks files that are in the store, and the manifest would no longer name them."""
    simulation = make_simulation(Capacity(8, 8192), Capacity(8, 8192))
    simulation.shared_output = False
    witness = run(simulation, make_saving_plan(restore=True))
    simulation.exit(1, "master", 3)
    while not any(isinstance(one, SaveOutput) for one in witness.acted):
        simulation.settle(1)
    simulation.store_trouble, simulation.stores_answer = AWAY, False
    witness.acted.clear()
    simulation.settle(100)
    assert simulation.stored[1].gang[0].attempt == 2
    assert {type(one) for one in witness.acted} == {RestoreOutput}
    simulation.stores_answer = True
    simulation.settle(100)
    assert SaveOutput(witness.acted[0].host, 1, 0) in witness.acted


def test_an_output_that_cannot_be_filled_fails_its_attempt() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    run(simulation, make_saving_plan(restore=True))
    simulation.stores_answer = False
    simulation.exit(1, "master", 3)
    simulation.settle()
    job = simulation.stored[1].gang[0]
    assert (job.attempt, job.reason, job.message) == (2, Reason.START_FAILED, "there is no bucket")
    assert simulation.state(1) is State.FAILED


def test_a_killed_experiment_ends_its_restoration() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    simulation.hosts[H1].images.add("base")
    simulation.submit(make_experiment(1, make_saving_plan(restore=True)))
    restoration = RestoreOutput(H1, 1, 1)
    while restoration not in simulation.turn().actions:
        simulation.slow = 1
    simulation.kill(1)
    assert CancelRestore(H1, 1) in (*simulation.turn().actions, *simulation.turn().actions)
    simulation.finish()
    simulation.settle()
    assert (simulation.state(1), simulation.stored[1].closed) == (State.KILLED, True)


def test_the_end_does_not_wait_for_a_host_that_is_lost() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    run(simulation, make_saving_plan())
    simulation.store_trouble, simulation.stores_answer = AWAY, False
    simulation.exit(1, "master", 0)
    simulation.settle(5)
    assert simulation.state(1) is State.FINISHED
    simulation.hosts[H1].faults.silent = True
    simulation.settle(3, 150.0)
    assert simulation.stored[1].closed
    assert simulation.now - START < timedelta(hours=1)
