"""What became of experiments, as tables of results read it, with both kinds of store."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from riseml.base.names import HostName
from riseml.base.states import CompanionKind, JobDuty, State
from riseml.model import Companion, Owner
from riseml.planning.plan import first_jobs
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.insertion import NewExperiments
from riseml.store.outcomes import ExperimentRun, OutcomeQuery, OutcomeStore
from tests.unit.control.simulation import make_plan

ANN, BEGIN = Owner("ann", 1000, 1000), datetime(2026, 11, 22, tzinfo=UTC)


def test_outcomes_leave_companions_out_and_runs_name_hosts(database: Database, experiments: ExperimentStore) -> None:
    plan = replace(make_plan("master", "worker.1", "ps.1"), parameters=(("lr", "0.1"), ("layers", "2")))
    beside = replace(make_plan("tensorboard"), companion=Companion(CompanionKind.TENSORBOARD, 60.0))
    for one in (plan, beside):
        experiments.add_experiments(NewExperiments(ANN, "toaster", "", "", ((one, first_jobs(one)),)), BEGIN)
    run_first(experiments)
    outcomes = OutcomeStore(database)
    (found,) = outcomes.read_outcomes("ann", OutcomeQuery(project="toaster"))
    assert (found.number, found.state, found.parameters) == (1, State.FINISHED, {"lr": "0.1", "layers": "2"})
    run = ExperimentRun(BEGIN, BEGIN + timedelta(minutes=1), ("gpu1",), 2)
    assert outcomes.read_runs([found.id, 99]) == {found.id: run}
    assert outcomes.read_outcomes("paul", OutcomeQuery(project="toaster")) == ()


def run_first(experiments: ExperimentStore) -> None:
    """Save that the first experiment has run on one host and has finished."""
    old = next(one for one in experiments.load_world().experiments if one.number == 1)
    jobs = tuple(job if job.part is JobDuty.PREPARES else replace(job, host=HostName("gpu1")) for job in old.jobs)
    new = replace(old, jobs=jobs, state=State.FINISHED, started_at=BEGIN, ended_at=BEGIN + timedelta(minutes=1))
    assert experiments.save_decision(old, new, BEGIN)


def test_only_experiments_with_several_attempts_are_named(database: Database, experiments: ExperimentStore) -> None:
    plan = make_plan("master", "worker.1")
    for _ in range(2):
        experiments.add_experiments(NewExperiments(ANN, "toaster", "", "", ((plan, first_jobs(plan)),)), BEGIN)
    before = experiments.get_experiment(2).experiment
    again = replace(before, jobs=tuple(replace(job, attempt=3) for job in before.jobs))
    assert experiments.save_decision(before, again, BEGIN)
    assert OutcomeStore(database).read_attempts([1, 2, 9]) == {2: 3}
