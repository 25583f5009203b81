"""What a search does next, for each state of its record."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from riseml.base.states import Reason, State, Wanted
from riseml.control.search_steps import (
    AskTrial,
    EndSearch,
    SearchStep,
    TellTrial,
    decide_search,
    find_search_end,
    find_search_failure,
    may_take_step,
)
from riseml.model import SearchEnd, SearchPlan, SearchRecord, Trial, TrialOutcome
from riseml.spec.config.types import Goal, SearchMethod, SearchSection
from tests.unit.control.simulation import START, make_experiment, make_plan

SECTION = SearchSection(SearchMethod.RANDOM, "loss", Goal.MINIMIZE, 3, max_failed=0)
SEARCH = SearchRecord(7, "paul", 4, SearchPlan(SECTION, ()), concurrency=2, wanted=Wanted.RUN, most_trials=3)
RUNS = Trial(1, 11, (), 0, placed=True)
WAITS = Trial(2, 12, (), 0)
ENDED = replace(RUNS, closed=True)
COMPLETE = replace(ENDED, outcome=TrialOutcome.COMPLETE)
FAILED = replace(ENDED, outcome=TrialOutcome.FAILED)
STOPPED = replace(ENDED, outcome=TrialOutcome.STOPPED)
VALUELESS = replace(FAILED, finished=True)
UNLIMITED = replace(SEARCH, plan=SearchPlan(replace(SECTION, max_failed=None), ()), most_trials=40)


def number(*trials: Trial) -> tuple[Trial, ...]:
    """Return the trials with numbers from 1."""
    return tuple(replace(trial, number=place) for place, trial in enumerate(trials, 1))


@pytest.mark.parametrize(
    ("trials", "steps"),
    [
        ((), (AskTrial(7, 1),)),
        ((RUNS,), (AskTrial(7, 2),)),
        ((RUNS, RUNS), ()),
        ((WAITS,), ()),
        ((RUNS, ENDED), (TellTrial(7, 2),)),
        ((ENDED, ENDED), (TellTrial(7, 1), TellTrial(7, 2))),
        ((COMPLETE, COMPLETE), (AskTrial(7, 3),)),
        ((COMPLETE, COMPLETE, RUNS), ()),
        ((COMPLETE, COMPLETE, COMPLETE), (EndSearch(7, SearchEnd.COMPLETED),)),
        ((FAILED,), (EndSearch(7, SearchEnd.TOO_MANY_FAILED),)),
        ((FAILED, RUNS), ()),
    ],
)
def test_the_records_decide_the_next_step(trials: tuple[Trial, ...], steps: tuple[SearchStep, ...]) -> None:
    assert decide_search(replace(SEARCH, trials=number(*trials))) == steps


def test_a_search_that_was_killed_ends_once_no_trial_runs() -> None:
    killed = replace(SEARCH, wanted=Wanted.KILL)
    assert decide_search(replace(killed, trials=number(RUNS))) == ()
    assert decide_search(killed) == (EndSearch(7, SearchEnd.KILLED),)
    assert decide_search(replace(killed, end=SearchEnd.KILLED)) == ()


def test_a_search_that_was_stopped_lets_its_trials_run_and_ends() -> None:
    stopped = replace(SEARCH, wanted=Wanted.STOP)
    assert decide_search(replace(stopped, trials=number(RUNS))) == ()
    assert decide_search(replace(stopped, trials=number(ENDED))) == (TellTrial(7, 1),)
    assert decide_search(stopped) == (EndSearch(7, SearchEnd.STOPPED),)


def test_a_paused_search_takes_results_and_makes_no_trial() -> None:
    paused = replace(SEARCH, paused=True)
    assert decide_search(replace(paused, trials=number(ENDED))) == (TellTrial(7, 1),)
    assert decide_search(replace(paused, trials=number(COMPLETE))) == ()
    assert decide_search(replace(paused, trials=number(COMPLETE, COMPLETE, COMPLETE))) == (
        EndSearch(7, SearchEnd.COMPLETED),
    )


@pytest.mark.parametrize(
    ("trials", "end"),
    [
        ((FAILED,) * 4, None),
        ((FAILED,) * 5, SearchEnd.FIRST_FAILED),
        ((VALUELESS,) * 5, SearchEnd.FIRST_FAILED),
        ((FAILED,) * 5 + (RUNS,), SearchEnd.FIRST_FAILED),
        ((FAILED,) * 5 + (COMPLETE,), None),
        ((STOPPED,) + (FAILED,) * 30, None),
    ],
)
def test_five_failures_end_a_search_until_one_trial_has_ended_well(
    trials: tuple[Trial, ...], end: SearchEnd | None
) -> None:
    assert find_search_end(replace(UNLIMITED, trials=number(*trials))) is end


def test_max_failed_replaces_the_default() -> None:
    generous = replace(UNLIMITED, plan=SearchPlan(replace(SECTION, max_failed=9), ()))
    assert find_search_end(replace(generous, trials=number(*(FAILED,) * 9))) is None
    assert find_search_end(replace(generous, trials=number(*(FAILED,) * 10))) is SearchEnd.TOO_MANY_FAILED


@pytest.mark.parametrize(
    ("trials", "end", "reason"),
    [
        ((COMPLETE, FAILED), SearchEnd.COMPLETED, None),
        ((COMPLETE, FAILED), SearchEnd.TOO_MANY_FAILED, Reason.TOO_MANY_FAILED),
        ((FAILED,) * 5, SearchEnd.FIRST_FAILED, Reason.TOO_MANY_FAILED),
        ((VALUELESS, VALUELESS), SearchEnd.COMPLETED, Reason.NO_METRIC),
        ((VALUELESS, FAILED), SearchEnd.STOPPED, Reason.NO_METRIC),
        ((FAILED, FAILED), SearchEnd.COMPLETED, None),
        ((VALUELESS,), SearchEnd.KILLED, None),
        ((COMPLETE,), SearchEnd.STOPPED, None),
        ((COMPLETE,), SearchEnd.BROKEN, Reason.INTERNAL),
        ((VALUELESS,), None, None),
    ],
)
def test_a_search_fails_with_too_many_failures_or_without_its_metric(
    trials: tuple[Trial, ...], end: SearchEnd | None, reason: Reason | None
) -> None:
    assert find_search_failure(replace(UNLIMITED, trials=number(*trials), end=end)) is reason


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"placed_at": START}, True),
        ({"state": State.FINISHED, "ended_at": START}, True),
        ({"closed": True}, True),
        ({"wanted": Wanted.STOP}, True),
        ({"reason": Reason.STOPPED_EARLY}, True),
        ({"state": State.RUNNING, "started_at": START}, False),
        ({"message": "pulling the image"}, False),
    ],
)
def test_a_search_is_woken_by_what_it_sees_of_a_trial(change: dict[str, Any], *, expected: bool) -> None:
    before = replace(make_experiment(1, make_plan("master")), set_id=7)
    after = replace(before, **change)
    assert may_take_step(before, after) is expected
    assert not may_take_step(replace(before, set_id=None), replace(after, set_id=None)), "it belongs to no set"
