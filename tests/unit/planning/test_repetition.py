"""Trials whose points run several times, each with another seed."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.base.states import Wanted
from riseml.control.search_steps import AskTrial, EndSearch, TellTrial, decide_search
from riseml.model import Point, SearchEnd, SearchPlan, SearchRecord, Trial, TrialOutcome
from riseml.planning.repetition import NextRun, find_next_run, fold_record, is_complete
from riseml.spec.config.types import SearchMethod, SearchSection, StopMethod, StopRule
from tests.support.searches import LR, make_search

SEEDS = ("1", "2", "3")
STOP = StopRule(StopMethod.ASHA)


def make_record(*runs: Trial, stop: StopRule | None = None, most: int = 3) -> SearchRecord:
    search = make_search(SearchMethod.RANDOM, most, stop=stop)
    return SearchRecord(7, "paul", 4, SearchPlan(search, (LR,), SEEDS), 2, Wanted.RUN, most, runs)


def make_run(number: int, lr: str, seed: str, value: float | None = None, **changes: object) -> Trial:
    """Return a run that has ended with a value, or one that goes on."""
    run = Trial(number, 100 + number, (("lr", lr), ("seed", seed)), 0, placed=True)
    if value is not None:
        run = replace(run, closed=True, finished=True, outcome=TrialOutcome.COMPLETE, value=value, told=number)
    return replace(run, **changes)  # type: ignore[arg-type]  # a test names fields


def test_the_value_of_a_trial_is_the_mean_of_its_runs() -> None:
    record = make_record(*(make_run(number, "0.1", str(number), number / 10) for number in (1, 2, 3)))
    (trial,) = fold_record(record).trials
    assert (trial.point, trial.outcome) == ((("lr", "0.1"),), TrialOutcome.COMPLETE)
    assert trial.value == pytest.approx(0.2)
    assert (trial.number, trial.runs, trial.first_run, trial.told) == (1, (1, 2, 3), 1, 1)


def test_several_objectives_of_a_trial_are_the_means_of_its_runs() -> None:
    values = ((1.0, 4.0), (2.0, 6.0), (6.0, 2.0))
    runs = [make_run(at, "0.1", str(at), pair[0], values=pair) for at, pair in enumerate(values, 1)]
    (trial,) = fold_record(make_record(*runs)).trials
    assert (trial.value, trial.values) == (3.0, (3.0, 4.0))
    open_trial = fold_record(make_record(*runs[:2])).trials[0]
    assert (open_trial.value, open_trial.values) == (None, ())
    failed = fold_record(make_record(*runs[:2], _fail(make_run(3, "0.1", "3")))).trials[0]
    assert (failed.outcome, failed.value, failed.values) == (TrialOutcome.FAILED, None, ())


def test_a_trial_has_no_result_before_all_its_seeds_have_run() -> None:
    runs = [make_run(1, "0.1", "1", 0.1), make_run(2, "0.1", "2", 0.2)]
    assert fold_record(make_record(*runs)).trials[0].outcome is None
    assert fold_record(make_record(*runs, make_run(3, "0.1", "3"))).trials[0].outcome is None


def test_a_failed_run_makes_the_trial_fail_and_no_further_seed_follows() -> None:
    runs = [make_run(1, "0.1", "1", 0.1), _fail(make_run(2, "0.1", "2"))]
    record = make_record(*runs)
    (trial,) = fold_record(record).trials
    assert (trial.outcome, trial.value, trial.message) == (TrialOutcome.FAILED, None, "its experiment did not finish")
    assert find_next_run(record) == NextRun(2, None, "1")


def test_seeds_follow_each_other_and_then_a_new_point() -> None:
    runs = [make_run(1, "0.1", "1")]
    assert find_next_run(make_record(*runs)) == NextRun(1, (("lr", "0.1"),), "2")
    runs += [make_run(2, "0.1", "2"), make_run(3, "0.1", "3")]
    assert find_next_run(make_record(*runs)) == NextRun(2, None, "1")
    assert find_next_run(make_record(*runs, most=1)) is None


def test_with_stopping_further_seeds_follow_only_a_first_run_that_came_to_its_end() -> None:
    first = make_run(1, "0.1", "1")
    assert find_next_run(make_record(first, stop=STOP)) == NextRun(2, None, "1"), "another first run to compare with"
    assert find_next_run(make_record(first, stop=STOP, most=1)) is None
    assert not is_complete(make_record(first, stop=STOP, most=1))
    ended = make_run(1, "0.1", "1", 0.5)
    assert find_next_run(make_record(ended, stop=STOP)) == NextRun(1, (("lr", "0.1"),), "2")
    stopped = replace(ended, outcome=TrialOutcome.STOPPED, stopped=True)
    record = make_record(stopped, stop=STOP, most=1)
    assert (find_next_run(record), is_complete(record)) == (None, True)
    (trial,) = fold_record(record).trials
    assert (trial.outcome, trial.value, trial.runs) == (TrialOutcome.STOPPED, 0.5, (1,))


def test_a_search_waits_for_first_runs_and_then_gives_them_their_seeds() -> None:
    running = make_record(make_run(1, "0.1", "1"), stop=STOP, most=1)
    assert decide_search(running) == ()
    ended = make_record(make_run(1, "0.1", "1", 0.5), stop=STOP, most=1)
    assert decide_search(ended) == (AskTrial(7, 2),)
    runs = [make_run(number, "0.1", str(number), 0.5) for number in (1, 2, 3)]
    assert decide_search(make_record(*runs, stop=STOP, most=1)) == (EndSearch(7, SearchEnd.COMPLETED),)


def test_trials_that_an_ended_search_left_incomplete_count_as_failed() -> None:
    record = replace(make_record(make_run(1, "0.1", "1", 0.1)), end=SearchEnd.KILLED)
    (trial,) = fold_record(record).trials
    assert (trial.outcome, trial.message) == (TrialOutcome.FAILED, "its search ended before all its seeds had run")


@given(st.data())
def test_a_search_gives_each_point_its_seeds_whatever_order_runs_end_in(data: st.DataObject) -> None:
    """Simulate a search: what follows from the records alone never repeats a seed, and always comes to its end."""
    rule = data.draw(st.sampled_from([None, STOP]))
    record = make_record(stop=rule)
    told = 0
    for _ in range(100):
        steps = decide_search(record)
        live = [run.number for run in record.live if not run.closed]
        if steps and isinstance(steps[0], EndSearch):
            break
        if steps and isinstance(steps[0], AskTrial):
            following = find_next_run(record)
            assert following is not None
            point: Point = following.point or (("lr", str(following.point_number)),)
            number = len(record.trials) + 1
            run = Trial(number, number, (*point, ("seed", following.seed)), told, placed=True)
            record = replace(record, trials=(*record.trials, run))
        elif steps and isinstance(steps[0], TellTrial):
            for step in steps:
                assert isinstance(step, TellTrial)
                told += 1
                outcomes = [TrialOutcome.COMPLETE, TrialOutcome.FAILED, *([TrialOutcome.STOPPED] if rule else [])]
                outcome = data.draw(st.sampled_from(outcomes))
                record = _tell(record, step.number, outcome, told)
        else:
            number = data.draw(st.sampled_from(live))
            record = _change(record, number, closed=True, finished=True)
    else:
        raise AssertionError("the search does not end")
    folded = fold_record(record)
    assert len(folded.trials) == record.most_trials
    assert sorted(trial.told or 0 for trial in folded.trials) == [1, 2, 3]
    for trial in folded.trials:
        runs = [record.trials[number - 1] for number in trial.runs]
        assert [dict(run.point)["seed"] for run in runs] == list(SEEDS[: len(runs)])
        if trial.outcome is TrialOutcome.COMPLETE:
            assert len(runs) == len(SEEDS)
            assert trial.value == fmean(run.value or 0.0 for run in runs)
        assert trial.asked_after < trial.number


def _tell(record: SearchRecord, number: int, outcome: TrialOutcome, told: int) -> SearchRecord:
    run = record.trials[number - 1]
    is_first = dict(run.point)["seed"] == "1"
    if outcome is TrialOutcome.STOPPED and not is_first:
        outcome = TrialOutcome.COMPLETE  # only first runs are compared
    value = None if outcome is TrialOutcome.FAILED else number / 10
    return _change(record, number, outcome=outcome, value=value, told=told)


def _fail(run: Trial) -> Trial:
    message = "its experiment did not finish"
    return replace(run, closed=True, outcome=TrialOutcome.FAILED, told=9, message=message)


def _change(record: SearchRecord, number: int, **changes: object) -> SearchRecord:
    trials = list(record.trials)
    trials[number - 1] = replace(trials[number - 1], **changes)  # type: ignore[arg-type]  # a test names fields
    return replace(record, trials=tuple(trials))


def test_a_search_without_repeat_is_its_own_fold() -> None:
    search: SearchSection = make_search(SearchMethod.RANDOM, 3)
    record = SearchRecord(7, "paul", 4, SearchPlan(search, (LR,)), 2, Wanted.RUN, 3, (Trial(1, 1, (("lr", "1"),), 0),))
    assert fold_record(record) is record
    assert find_next_run(record) == NextRun(2, None, "")
