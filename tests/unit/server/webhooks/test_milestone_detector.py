"""Metrics reach the values of `train.notify` once, whatever comes later and whichever server looks."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from riseml.base.errors import StoreError
from riseml.model import Owner
from riseml.planning.plan import first_jobs
from riseml.server.webhooks.milestone_detector import MilestoneDetector, find_reached
from riseml.spec.config.types import MetricCondition, NotifySection, Relation
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.insertion import NewExperiments
from riseml.store.metrics.metric_summary import MetricSummary
from riseml.store.milestones import Milestone, MilestoneStore
from tests.unit.control.simulation import change_policy, make_plan

NOW = datetime(2026, 8, 31, 7, 23, 46, tzinfo=UTC)
ACCURACY, LOSS = MetricCondition("accuracy", Relation.ABOVE, 0.95), MetricCondition("loss", Relation.AT_MOST, 0.1)


def summarize(name: str, *values: float) -> MetricSummary:
    """Return the summary of values at the steps 1, 2, ..."""
    low, high = min(values), max(values)
    steps = values.index(low) + 1, values.index(high) + 1
    return MetricSummary(name, len(values), values[-1], len(values), "", 1, low, steps[0], high, steps[1])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MilestoneStore]:
    """A store in which experiment 1 asks for something, and 2 for nothing."""
    database = Database(f"sqlite:///{tmp_path}/riseml.db")
    for notify in (NotifySection(reached=(ACCURACY, LOSS)), None):
        plan = make_plan("train")
        new = NewExperiments(Owner("ann", 1, 1), "x", "", "", ((change_policy(plan, notify=notify), first_jobs(plan)),))
        ExperimentStore(database).add_experiments(new, NOW)
    yield MilestoneStore(database)
    database.close()


def list_all(store: MilestoneStore) -> list[Milestone]:
    found: list[Milestone] = []
    while (one := store.find_next(found[-1].id if found else 0)) is not None:
        found.append(one)
    return found


def test_each_condition_is_met_once(store: MilestoneStore) -> None:
    seen: dict[int, dict[str, MetricSummary]] = {}
    news: list[str] = []

    def read(wanted: Collection[int]) -> dict[int, dict[str, MetricSummary]]:
        return {one: seen.get(one, {}) for one in wanted}

    def make_detector() -> MilestoneDetector:
        return MilestoneDetector(read, store, lambda: news.append("one more"))

    detector = make_detector()
    detector.note_counted(frozenset({1, 2}))
    seen[1] = seen[2] = {"accuracy": summarize("accuracy", 0.5, 0.95), "loss": summarize("loss", 0.2)}
    detector.note_counted(frozenset({1, 2}))
    assert list_all(store) == []
    seen[1] = {"accuracy": summarize("accuracy", 0.5, 0.96, 0.7), "loss": summarize("loss", 0.1, 0.2)}
    detector.note_counted(frozenset({1, 2, 99}))
    detector.note_counted(frozenset({1}))
    make_detector().note_counted(frozenset({1}))
    assert [(one.number, one.condition, one.value, one.step) for one in list_all(store)] == [
        (1, "accuracy > 0.95", 0.96, 2),
        (1, "loss <= 0.1", 0.1, 1),
    ]
    assert len(news) == 2


def test_what_the_store_does_not_take_comes_with_the_next_reports(
    store: MilestoneStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = {1: {"loss": summarize("loss", 0.05)}}
    detector = MilestoneDetector(lambda wanted: {one: seen.get(one, {}) for one in wanted}, store, lambda: None)
    with monkeypatch.context() as patch:
        patch.setattr(store, "add_milestone", _refuse)
        detector.note_counted(frozenset({1}))
    detector.note_counted(frozenset({2}))
    assert [one.condition for one in list_all(store)] == ["loss <= 0.1"]


def test_a_milestone_whose_answer_was_lost_is_kept_once(store: MilestoneStore, monkeypatch: pytest.MonkeyPatch) -> None:
    add, news = MilestoneStore.add_milestone, list[str]()

    def add_and_lose_the_answer(self: MilestoneStore, *row: Any) -> None:
        add(self, *row)
        raise StoreError("the store does not answer", "")

    summaries = {1: {"loss": summarize("loss", 0.05)}}
    detector = MilestoneDetector(lambda _: summaries, store, lambda: news.append("one more"))
    with monkeypatch.context() as patch:
        patch.setattr(MilestoneStore, "add_milestone", add_and_lose_the_answer)
        detector.note_counted(frozenset({1}))
    assert news, "a webhook waits for it"
    summaries[1]["accuracy"] = summarize("accuracy", 0.96)
    detector.note_counted(frozenset())
    assert [one.condition for one in list_all(store)] == ["loss <= 0.1", "accuracy > 0.95"]


def _refuse(*_: object) -> None:
    raise StoreError("the disk is full", "")


@pytest.mark.parametrize(
    ("relation", "values", "reached"),
    [
        (Relation.ABOVE, (1.0,), None),
        (Relation.ABOVE, (1.5, 3.0, 2.0), (3.0, 2)),
        (Relation.AT_LEAST, (1.0,), (1.0, 1)),
        (Relation.BELOW, (1.0,), None),
        (Relation.BELOW, (2.0, 0.5), (0.5, 2)),
        (Relation.AT_MOST, (1.0, 4.0), (1.0, 1)),
    ],
)
def test_relations(relation: Relation, values: tuple[float, ...], reached: tuple[float, int] | None) -> None:
    assert find_reached(MetricCondition("x", relation, 1.0), summarize("x", *values)) == reached
