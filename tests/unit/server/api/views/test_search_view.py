"""What users read of a search and of its end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from riseml.base.errors import Refused
from riseml.base.states import Reason, State, Wanted
from riseml.model import Experiment, SearchEnd, SearchPlan, SearchRecord, Trial, TrialOutcome
from riseml.server.api.routes.experiment_routes import _check_points
from riseml.server.api.views.search_view import describe_end, describe_next_step, describe_search, show_search
from riseml.spec.config.types import Goal, PopulationRule, SearchMethod, StopMethod, StopRule
from tests.support.searches import LAYERS, make_search
from tests.unit.control.simulation import make_experiment, make_plan

WRONG = "no trial reported accuracy; there is acc"


def make_record(*trials: Trial, end: SearchEnd | None = SearchEnd.COMPLETED) -> SearchRecord:
    return SearchRecord(1, "paul", 144, SearchPlan(make_search(trials=4), (LAYERS,)), 1, Wanted.RUN, 4, trials, end)


def make_trial(number: int, outcome: TrialOutcome | None, value: float | None = None, *, finished: bool) -> Trial:
    return Trial(number, number, (("layers", "2"),), 0, outcome=outcome, value=value, finished=finished)


def make_ended(count: int) -> list[Experiment]:
    ended = replace(make_experiment(1, make_plan("train"), set_id=1), state=State.FINISHED, reason=Reason.COMPLETED)
    return [ended] * count


GOOD = make_trial(1, TrialOutcome.COMPLETE, 0.5, finished=True)
VALUELESS = make_trial(2, TrialOutcome.FAILED, finished=True)
FAILED = make_trial(3, TrialOutcome.FAILED, finished=False)
RUNNING = make_trial(4, None, finished=False)


@pytest.mark.parametrize(
    ("trials", "names", "text"),
    [
        ((GOOD, VALUELESS, FAILED), ["acc", "accuracy"], "1 failed, 1 without a value, best 144.1 accuracy 0.5"),
        ((VALUELESS, FAILED), [], "1 failed, 1 without a value; no trial reported accuracy"),
        ((VALUELESS,), ["acc"], f"1 without a value; {WRONG}"),
        ((VALUELESS,), ["d", "f", "e", "b", "a", "c"], f"1 without a value; {WRONG[:-6]}are a, b, c, d, e and 1 more"),
        ((VALUELESS, RUNNING), ["acc", "accuracy"], "1 without a value"),
    ],
)
def test_the_search_says_what_its_trials_lack(trials: tuple[Trial, ...], names: list[str], text: str) -> None:
    assert describe_search(make_record(*trials), names) == f"trial {len(trials)} of 4, {text}"


@pytest.mark.parametrize("seeds", [(), ("1", "2")])
def test_several_objectives_name_the_first_runs_of_the_front(seeds: tuple[str, ...]) -> None:
    goals = (("accuracy", Goal.MAXIMIZE), ("loss", Goal.MINIMIZE))
    values = ((0.5, 3.0), (0.7, 1.0), (0.9, 4.0), (0.9, 2.0))
    trials = [
        replace(
            make_trial(at, TrialOutcome.COMPLETE, pair[0], finished=True),
            values=pair,
            told=at,
            point=(
                ("layers", str((at + 1) // 2 if seeds else at)),
                *((("seed", seeds[(at + 1) % 2]),) if seeds else ()),
            ),
        )
        for at, pair in enumerate(values, 1)
    ]
    plan = SearchPlan(make_search(trials=4, metrics=goals), (LAYERS,), seeds)
    record = SearchRecord(1, "paul", 144, plan, 1, Wanted.RUN, len(trials), tuple(trials), SearchEnd.COMPLETED)
    shown = show_search(record)
    assert shown["best"] is None
    assert [objective["metric"] for objective in shown["objectives"]] == ["accuracy", "loss"]
    if seeds:
        assert shown["front"] == ["144.1", "144.3"]
        end = "2 on the front: 144.1, 144.3, each with 1 more seed, by their means"
    else:
        assert shown["front"] == ["144.2", "144.4"]
        end = "2 on the front: 144.2, 144.4"
    assert describe_end(make_ended(4), record) == f"4 of 4 finished, {end}"


def test_a_search_whose_trials_run_lacks_nothing() -> None:
    running = make_record(RUNNING, end=None)
    assert describe_search(running, ["acc"]) == "trial 1 of 4"
    assert describe_search(replace(running, paused=True)) == "trial 1 of 4, paused"


@pytest.mark.parametrize(
    ("end", "text"),
    [
        (SearchEnd.COMPLETED, ""),
        (SearchEnd.EXHAUSTED, "; every combination of the parameters was tried"),
        (SearchEnd.TOO_MANY_FAILED, "; more trials failed than search.max_failed allows"),
        (SearchEnd.FIRST_FAILED, "; the first 5 trials failed, and none ended well"),
        (SearchEnd.STOPPED, "; a user has stopped the search"),
    ],
)
def test_the_end_says_why_no_trial_follows(end: SearchEnd, text: str) -> None:
    assert describe_end(make_ended(2), make_record(FAILED, end=end)) == f"2 of 2 finished{text}"
    assert describe_end([*make_ended(1), make_experiment(2, make_plan("train"), set_id=1)], make_record(end=end)) == ""


def test_a_set_that_has_tried_everything_takes_no_trials() -> None:
    trials = [replace(GOOD, number=number, point=(("layers", str(number + 1)),)) for number in (1, 2, 3)]
    _check_points(make_record(*trials[:2]))
    for end in (SearchEnd.EXHAUSTED, SearchEnd.COMPLETED, None):
        with pytest.raises(Refused, match="set 144 has tried every combination"):
            _check_points(make_record(*trials, end=end))


def test_the_end_names_the_metrics_that_there_are() -> None:
    assert describe_end(make_ended(1), make_record(VALUELESS)) == "1 of 1 finished; no trial reported accuracy"
    assert describe_end(make_ended(1), make_record(VALUELESS), ["acc"]) == f"1 of 1 finished; {WRONG}"
    assert describe_end(make_ended(1), None, ["acc"]) == "1 of 1 finished"


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (make_record(GOOD, end=None), "chooses trial 2 of 4 now"),
        (make_record(GOOD, replace(RUNNING, number=2), end=None), "makes trial 3 of 4 when 144.2 has got a place"),
        (
            make_record(GOOD, replace(RUNNING, number=2, placed=True), end=None),
            "makes trial 3 of 4 when a trial ends: 1 of its trials runs (concurrency: 1)",
        ),
        (make_record(GOOD), "makes no further trial: all trials have ended"),
        (
            replace(make_record(RUNNING, end=None), paused=True),
            "is paused; `riseml search 144 --resume` lets it go on; 1 of its trials runs",
        ),
        (
            make_record(*(replace(GOOD, number=number) for number in (1, 2, 3)), RUNNING, end=None),
            "makes no further trial: all trials are made; 1 of its trials runs",
        ),
    ],
)
def test_the_next_step_of_a_search_is_said(record: SearchRecord, text: str) -> None:
    assert describe_next_step(record) == text


def test_a_population_says_which_generation_it_waits_for() -> None:
    plan = SearchPlan(make_search(SearchMethod.PBT, trials=4, pbt=PopulationRule(2)), (LAYERS,))
    record = SearchRecord(1, "paul", 144, plan, 1, Wanted.RUN, 4, (GOOD, replace(RUNNING, number=2)))
    assert describe_next_step(record) == "begins generation 2 when generation 1 has ended: 1 of its trials runs"
    ended = replace(record, trials=(GOOD, replace(GOOD, number=2)))
    assert describe_next_step(ended) == "chooses trial 3 of 4 now"


def make_repeated(*runs: Trial, concurrency: int = 4, stop: StopRule | None = None, most: int = 4) -> SearchRecord:
    """Return a search whose points run with two seeds."""
    plan = SearchPlan(make_search(trials=4, stop=stop), (LAYERS,), ("1", "2"))
    return SearchRecord(1, "paul", 144, plan, concurrency, Wanted.RUN, most, runs)


def make_run(number: int, layers: str, seed: str, value: float | None = None) -> Trial:
    run = Trial(number, number, (("layers", layers), ("seed", seed)), 0, placed=True)
    if value is None:
        return run
    return replace(run, outcome=TrialOutcome.COMPLETE, value=value, told=number, finished=True, closed=True)


def test_a_search_with_several_seeds_counts_points_and_names_means() -> None:
    runs = [make_run(1, "2", "1", 0.5), make_run(2, "2", "2", 0.7), make_run(3, "3", "1", 0.9), make_run(4, "3", "2")]
    record = make_repeated(*runs)
    assert describe_search(record) == "trial 2 of 4, best 144.1 and 1 more seed, mean accuracy 0.6"
    view = show_search(record)
    assert view["best"] == {"id": "144.1", "value": 0.6, "parameters": {"layers": "2"}, "runs": 2}
    assert (view["made"], view["running"], view["complete"], view["repeat"]) == (2, 1, 1, 2)
    assert view["message"] == describe_search(record)


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (make_repeated(make_run(1, "2", "1")), "makes seed 2 of trial 1 of 4 now"),
        (
            make_repeated(make_run(1, "2", "1"), concurrency=1),
            "makes seed 2 of trial 1 of 4 when a run ends: 1 of its runs goes on (concurrency: 1)",
        ),
        (make_repeated(make_run(1, "2", "1", 0.5), make_run(2, "2", "2")), "chooses trial 2 of 4 now"),
        (
            make_repeated(make_run(1, "2", "1"), stop=StopRule(StopMethod.ASHA), most=1),
            "makes further runs when the first one of a trial has ended: 1 of its runs goes on",
        ),
    ],
)
def test_a_search_with_several_seeds_says_what_it_runs_next(record: SearchRecord, text: str) -> None:
    assert describe_next_step(record) == text
