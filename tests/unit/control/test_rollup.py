"""What the state of a set says of its members."""

from __future__ import annotations

from dataclasses import replace

import pytest

from riseml.base.states import Reason, State
from riseml.control.rollup import describe_set_end, find_usual_failure, roll_up_set
from tests.unit.control.simulation import make_experiment, make_plan


@pytest.mark.parametrize(
    ("states", "state", "reason", "text"),
    [
        ("FINISHED FINISHED", State.FINISHED, Reason.COMPLETED, "2 of 2 finished"),
        ("FAILED FINISHED KILLED", State.FINISHED, Reason.COMPLETED, "1 of 3 finished, 1 failed, 1 killed"),
        ("FAILED FAILED", State.FAILED, Reason.NONE_FINISHED, "0 of 2 finished, 2 failed"),
        ("KILLED FAILED", State.FAILED, Reason.NONE_FINISHED, "0 of 2 finished, 1 failed, 1 killed"),
        ("KILLED KILLED", State.KILLED, Reason.KILLED_BY_USER, "0 of 2 finished, 2 killed"),
        ("FINISHED RUNNING", State.RUNNING, Reason.RUNNING, ""),
    ],
)
def test_a_set_in_which_none_finished_is_no_success(states: str, state: State, reason: Reason, text: str) -> None:
    members = [
        replace(make_experiment(number, make_plan("train"), set_id=1), state=State(word), reason=Reason.RUNNING)
        for number, word in enumerate(states.split(), 1)
    ]
    assert roll_up_set(members) == (state, reason)
    assert describe_set_end(members) == text


def test_a_set_whose_search_has_failed_is_no_success_although_members_finished() -> None:
    running = make_experiment(1, make_plan("train"), set_id=1)
    ended = replace(running, state=State.FINISHED, reason=Reason.COMPLETED)
    assert roll_up_set([ended], failure=Reason.NO_METRIC) == (State.FAILED, Reason.NO_METRIC)
    assert roll_up_set([ended, running], failure=Reason.NO_METRIC)[0] is running.state, "it goes on"


def test_a_set_runs_between_two_members_too() -> None:
    ended, next_one = (make_experiment(number, make_plan("train"), set_id=1) for number in (1, 2))
    next_one = replace(next_one, state=State.STARTING, reason=Reason.PLACED)
    assert roll_up_set([replace(ended, state=State.FAILED), next_one]) == (State.STARTING, Reason.PLACED)
    ended = replace(ended, state=State.FINISHED, started_at=ended.created_at)
    assert roll_up_set([ended, next_one]) == (State.RUNNING, Reason.PLACED)


def test_a_roll_up_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one"):
        roll_up_set([])


@pytest.mark.parametrize(
    ("others", "state"), [([], State.FINISHED), ([State.KILLED], State.KILLED), ([State.FAILED], State.FAILED)]
)
def test_a_set_of_which_a_search_stopped_all_but_the_failed_has_not_finished(others: list[State], state: State) -> None:
    ended = replace(make_experiment(1, make_plan("train"), set_id=1), state=State.FINISHED, reason=Reason.STOPPED_EARLY)
    members = [ended, *(replace(ended, state=other, reason=Reason.EXIT_CODE) for other in others)]
    assert roll_up_set(members)[0] is state


def test_early_stops_are_counted_apart_and_the_best_is_named() -> None:
    ended = replace(make_experiment(1, make_plan("train"), set_id=1), state=State.FINISHED, reason=Reason.COMPLETED)
    members = [ended, replace(ended, reason=Reason.STOPPED_EARLY), replace(ended, state=State.FAILED)]
    best = "best 144.3 accuracy 0.981 (lr=0.01)"
    lost = [replace(ended, reason=Reason.NOT_FINITE, state=state) for state in (State.FINISHED, State.FAILED)]
    assert describe_set_end([ended, *lost]) == "1 of 3 finished, 1 stopped early, 1 failed"
    assert roll_up_set(lost)[0] is State.FAILED
    assert describe_set_end(members, best) == f"1 of 3 finished, 1 stopped early, 1 failed, {best}"
    assert describe_set_end([*members, replace(ended, state=State.RUNNING)], best) == ""


def test_the_usual_failure_of_a_set_is_the_first_member_of_the_most_common_cause() -> None:
    one = replace(make_experiment(1, make_plan("train"), set_id=1), reason=Reason.EXIT_CODE)
    states = [
        (State.FINISHED, ""),
        (State.FAILED, "exit code 3"),
        (State.FAILED, "exit code 1"),
        (State.FAILED, "exit code 1"),
    ]
    members = [replace(one, sub=number, state=state, message=text) for number, (state, text) in enumerate(states, 1)]
    usual = find_usual_failure(members)
    assert usual is not None
    assert usual.sub == 3
    assert find_usual_failure(members[:1]) is None
    first = find_usual_failure(members[:3])
    assert first is not None
    assert first.sub == 2
