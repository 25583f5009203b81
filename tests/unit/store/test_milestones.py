"""Metrics that have reached a value: in the order in which the server noticed it, in both kinds of store."""

from __future__ import annotations

from datetime import timedelta

from riseml.planning.plan import first_jobs
from riseml.spec.config.types import MetricCondition, NotifySection, Relation
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.insertion import NewExperiments
from riseml.store.milestones import MilestoneStore
from tests.unit.control.simulation import change_policy
from tests.unit.store.submissions import ANN, NOW, PLAN, submit

NOTIFY = NotifySection(reached=(MetricCondition("accuracy", Relation.ABOVE, 0.95),))


def test_the_next_milestone_names_its_experiment_and_its_webhooks(
    database: Database, experiments: ExperimentStore
) -> None:
    plan = change_policy(PLAN, notify=NOTIFY)
    rows = ((plan, first_jobs(plan)),) * 2
    details, _ = experiments.add_experiments(NewExperiments(ANN, "toaster", "", "", rows, concurrency=1), NOW)
    member = details[1].experiment
    store = MilestoneStore(database)
    assert store.find_next(0) is None
    store.add_milestone(member.id, "accuracy > 0.95", 0.96, None, NOW)
    store.add_milestone(member.id, "loss <= 0.1", 0.1, 12, NOW + timedelta(hours=1))
    first = store.find_next(0)
    assert first is not None
    assert (first.experiment, first.number, first.sub, first.user) == (member.id, 1, 2, "ann")
    assert (first.condition, first.value, first.step) == ("accuracy > 0.95", 0.96, None)
    assert (first.at, first.notify) == (NOW, NOTIFY)
    second = store.find_next(first.id)
    assert second is not None
    assert (second.condition, second.step, store.find_next(second.id)) == ("loss <= 0.1", 12, None)
    assert store.list_conditions(member.id) == {"accuracy > 0.95", "loss <= 0.1"}
    assert store.list_conditions(details[0].experiment.id) == frozenset()
    assert [store.find_last_before(NOW + timedelta(minutes=at)) for at in (0, 1, 99)] == [0, first.id, second.id]


def test_an_experiment_without_the_section_asks_for_nothing(database: Database, experiments: ExperimentStore) -> None:
    store = MilestoneStore(database)
    assert store.find_notify(submit(experiments).id) is None
    assert store.find_notify(99) is None
