"""Searches: processor time to choose the points of one set of 1,000 trials, how good points are beside those of plain
Optuna, and how long short trials take beside plain Optuna."""

from __future__ import annotations

import time
from dataclasses import replace
from random import Random

from benchmarks.common import BenchContext, Measure, Report, bar_of_time
from benchmarks.search_quality import add_quality
from benchmarks.search_race import add_race
from riseml.model import SearchPlan, Trial, TrialOutcome
from riseml.searches.propose import Proposer
from riseml.spec.config.types import Distribution, Goal, Parameter, Scale, SearchMethod, SearchSection

_TRIALS = 1_000  # the most that a set may have
_RUNNING = 4  # trials at the same time
_LAST = 20  # the time of one point is the median of this many last trials
_MOST = 0.1  # seconds of processor time for one point
_PARAMETERS = (
    Parameter("lr", (), Distribution(Scale.LOG, 1e-5, 0.1)),
    Parameter("units", (), Distribution(Scale.INT, 16, 256, 16)),
    Parameter("dropout", (), Distribution(Scale.UNIFORM, 0.0, 0.5, 0.1)),
    Parameter("layers", ("2", "3", "4")),
)


def run(context: BenchContext) -> Report:
    report = Report()
    count = context.rounds(_TRIALS, 50)
    for method in (SearchMethod.RANDOM, SearchMethod.TPE, SearchMethod.CMA_ES):
        times = _choose_points(method, count)
        report.add(f"the points of {count:,} trials together", Measure(method.value, (sum(times),), "s"))
        last = Measure(method.value, tuple(times[-_LAST:]), "ms", "processor time")
        report.add(f"one point, after {count:,} trials", last)
        requirement = f"{method.value}: one point after {count:,} trials"
        report.bars.append(bar_of_time(requirement, last.median, _MOST, "ms"))
    add_quality(report, context)
    add_race(report, context)
    return report


def _choose_points(method: SearchMethod, count: int) -> list[float]:
    """Return the processor seconds of each point of a search, with four trials running at the same time."""
    search = SearchSection(method=method, metric="accuracy", goal=Goal.MAXIMIZE, trials=count, seed=7)
    proposer = Proposer(SearchPlan(search, _PARAMETERS))
    random = Random(7)
    trials = list[Trial]()
    times = []
    for number in range(1, count + 1):
        begun = time.process_time()
        point = proposer.propose_point(trials)
        times.append(time.process_time() - begun)
        if point is None:
            raise AssertionError(f"{number - 1} points were chosen, not {count}")
        told_count = max(0, number - _RUNNING)
        trials.append(Trial(number, number, point, told_count))
        if told_count:
            ended = replace(trials[told_count - 1], closed=True, finished=True, told=told_count, value=random.random())
            trials[told_count - 1] = replace(ended, outcome=TrialOutcome.COMPLETE)
    return times
