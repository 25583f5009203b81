"""Submissions of tests: their users, their plan and their time."""

from __future__ import annotations

from datetime import UTC, datetime

from riseml.model import Environment, Experiment, Owner
from riseml.planning.plan import first_jobs
from riseml.store.experiments import ExperimentStore
from riseml.store.insertion import NewExperiments
from tests.unit.control.simulation import make_plan

NOW = datetime(2026, 8, 31, 7, 23, 46, tzinfo=UTC)
PLAN = make_plan("master", "worker.1", "ps.1")
ANN, BOB = Owner("ann", 1000, 1000), Owner("bob", 1001, 1001)


def submit(
    experiments: ExperimentStore,
    key: str | None = None,
    count: int = 1,
    user: str = "paul",
    environment: Environment = (),
) -> Experiment:
    plans = tuple((PLAN, first_jobs(PLAN)) for _ in range(count))
    concurrency = 2 if count > 1 else None
    submitted = NewExperiments(
        Owner(user, 1000, 1000), "toaster", "project: toaster", "", plans, environment, key=key, concurrency=concurrency
    )
    details, _ = experiments.add_experiments(submitted, NOW)
    return details[0].experiment
