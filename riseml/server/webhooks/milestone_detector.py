"""Record that metrics have reached the values of `train.notify`, after reports were counted."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping

from riseml.base.errors import StoreError
from riseml.server.clock import now
from riseml.spec.config.types import MetricCondition, Relation
from riseml.store.metrics.metric_summary import MetricSummary
from riseml.store.milestones import MilestoneStore

_MOST_KNOWN = 1000  # experiments whose conditions are remembered

ReadSummaries = Callable[[Collection[int]], Mapping[int, Mapping[str, MetricSummary]]]

log = logging.getLogger(__name__)


class MilestoneDetector:
    """Stores each milestone once. Only the thread that counts reports uses it.

    Args:
        read: returns the metrics of experiments.
        store: keeps the milestones.
        note_news: called when there may be a new one.
    """

    def __init__(self, read: ReadSummaries, store: MilestoneStore, note_news: Callable[[], None]) -> None:
        self._read = read
        self._store = store
        self._note_news = note_news
        self._awaited: OrderedDict[int, frozenset[MetricCondition]] = OrderedDict()  # by experiment
        self._late: frozenset[int] = frozenset()  # experiments whose milestones could not be kept

    def note_counted(self, experiments: frozenset[int]) -> None:
        """Check experiments whose logs were counted. Milestones that cannot be stored now are tried again in the next
        call."""
        late = set()
        for experiment in sorted(experiments | self._late):
            try:
                self._check_experiment(experiment)
            except StoreError as error:
                late.add(experiment)
                self._awaited.pop(experiment, None)  # a milestone may be stored although the answer was lost
                self._note_news()
                log.warning("what metrics have reached is kept later: %s", error.message)
        self._late = frozenset(late)

    def _check_experiment(self, experiment: int) -> None:
        awaited = self._find_awaited(experiment)
        if not awaited:
            return
        summaries = self._read([experiment]).get(experiment, {})
        for condition in sorted(awaited, key=str):
            summary = summaries.get(condition.metric)
            reached = None if summary is None else find_reached(condition, summary)
            if reached is None:
                continue
            self._store.add_milestone(experiment, str(condition), *reached, now())
            self._awaited[experiment] -= {condition}
            self._note_news()

    def _find_awaited(self, experiment: int) -> frozenset[MetricCondition]:
        """Return the conditions that an experiment has not met."""
        awaited = self._awaited.get(experiment)
        if awaited is None:
            notify = self._store.find_notify(experiment)
            met = self._store.list_conditions(experiment) if notify is not None and notify.reached else frozenset()
            awaited = frozenset(
                condition for condition in (() if notify is None else notify.reached) if str(condition) not in met
            )
            self._awaited[experiment] = awaited
            while len(self._awaited) > _MOST_KNOWN:
                self._awaited.popitem(last=False)
        return awaited


def find_reached(condition: MetricCondition, summary: MetricSummary) -> tuple[float, int | None] | None:
    """Return the best value that meets a condition, and its step; None when no value meets it."""
    match condition.relation:
        case Relation.ABOVE | Relation.AT_LEAST:
            value = summary.maximum
            step = summary.maximum_step
        case Relation.BELOW | Relation.AT_MOST:
            value = summary.minimum
            step = summary.minimum_step
    return (value, step) if value is not None and condition.holds(value) else None
