"""What a search does next, for each state of its record."""

from __future__ import annotations

from dataclasses import replace

import pytest

from riseml.base.states import Wanted
from riseml.control.search_steps import AskTrial, EndSearch, SearchStep, TellTrial, decide_search
from riseml.model import SearchEnd, SearchPlan, SearchRecord, Trial, TrialOutcome
from riseml.spec.config.types import Goal, SearchMethod, SearchSection

SECTION = SearchSection(SearchMethod.RANDOM, "loss", Goal.MINIMIZE, 3, max_failed=0)
SEARCH = SearchRecord(7, "paul", 4, SearchPlan(SECTION, ()), concurrency=2, wanted=Wanted.RUN, most_trials=3)
RUNS = Trial(1, 11, (), 0, placed=True)
WAITS = Trial(2, 12, (), 0)
ENDED = replace(RUNS, closed=True)
COMPLETE = replace(ENDED, outcome=TrialOutcome.COMPLETE)
FAILED = replace(ENDED, outcome=TrialOutcome.FAILED)


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
