"""The values by which runs are ranked, as `results.run_value` says: most from summaries, some from the log.

A summary has the best and the last value of a run with one attempt. For the others the reports are read once, and then
only what is new.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

from riseml.analysis.ranking import Objective
from riseml.analysis.run_value import RunValue, summarize_value
from riseml.base.records import dataclass
from riseml.spec.config.types import ValueKind
from riseml.store.logs.read_position import ReadPosition
from riseml.store.metrics.metric_store import MetricStore
from riseml.store.metrics.metric_summary import MetricSummary
from riseml.store.outcomes import OutcomeStore

_MOST_FOLLOWED = 2_000  # runs whose position is kept; a further one is read from the beginning


class StepReport(NamedTuple):
    """One value at its step, and the value by which its run is compared there."""

    step: int  # the step of the report before it, or its number within the attempt, where it was reported without
    value: float  # that counts up to here, see `RunValue.find_so_far`


@dataclass(slots=True)
class _Followed:
    """How far the reports of a run were read."""

    value: RunValue
    position: ReadPosition = ReadPosition()
    attempt: int = 0
    count: int = 0  # values of this attempt
    last: int | None = None  # step; None: none came with a value


class RunFollower:
    """Follows the reports of runs by one metric each. Not safe from several threads.

    Args:
        store: has what jobs report.
    """

    def __init__(self, store: MetricStore) -> None:
        self._store = store
        self._followed: OrderedDict[tuple[int, Objective], _Followed] = OrderedDict()

    def read_new(self, experiment: int, objective: Objective) -> list[StepReport]:
        """Return what came since the last call, in its order."""
        key = (experiment, objective)
        followed = self._followed.pop(key, None) or _Followed(RunValue(objective.goal, objective.rule))
        reports: list[StepReport] = []
        complete = False
        while not complete:
            page = self._store.read_values(experiment, objective.metric, followed.position)
            for entry in page.values:
                step = _take_step(followed, entry.step, entry.attempt)
                followed.value.add(entry.value, step, entry.attempt)
                reports.append(StepReport(step, followed.value.find_so_far()))
            followed.position = page.end
            complete = page.complete
        self._followed[key] = followed
        if len(self._followed) > _MOST_FOLLOWED:
            self._followed.popitem(last=False)
        return reports

    def find_value(self, experiment: int, objective: Objective, attempt: int) -> float | None:
        """Return the value of a run up to now; None where it has none."""
        self.read_new(experiment, objective)
        return self._followed[experiment, objective].value.find_value(attempt)

    def forget(self, experiment: int) -> None:
        """Forget how far the reports of a run were read."""
        for key in [key for key in self._followed if key[0] == experiment]:
            del self._followed[key]


def _take_step(followed: _Followed, step: int | None, attempt: int) -> int:
    if attempt > followed.attempt:
        followed.attempt = attempt
        followed.count = 0
        followed.last = None
    followed.count += 1
    followed.last = followed.last if step is None else step
    return followed.count if followed.last is None else followed.last


class RunValues:
    """The values of runs in one store. Safe from many threads.

    Args:
        metrics: what jobs have reported.
        outcomes: which runs had several attempts.
    """

    def __init__(self, metrics: MetricStore, outcomes: OutcomeStore) -> None:
        self._metrics = metrics
        self._outcomes = outcomes
        self._follower = RunFollower(metrics)
        self._lock = threading.Lock()

    def read_values(self, summaries: Mapping[int, MetricSummary], objective: Objective) -> dict[int, float]:
        """Return the value of each of these runs that has one.

        Args:
            summaries: of the metric, by the keys of experiments.
            objective: the metric, and which of its values counts.
        """
        attempts = self._outcomes.read_attempts(summaries)
        is_summed = objective.rule.kind in (ValueKind.BEST, ValueKind.LAST)
        values: dict[int, float] = {}
        for experiment, summary in summaries.items():
            attempt = attempts.get(experiment, 1)
            if is_summed and attempt == summary.attempt == 1:
                value = summarize_value(summary, objective.goal, objective.rule)
            else:
                with self._lock:
                    value = self._follower.find_value(experiment, objective, attempt)
            if value is not None:
                values[experiment] = value
        return values

    def find_value(self, experiment: int, objective: Objective) -> float | None:
        """Return the value of one run; None where it has none."""
        summary = self._metrics.read_summaries([experiment]).get(experiment, {}).get(objective.metric)
        return None if summary is None else self.read_values({experiment: summary}, objective).get(experiment)
