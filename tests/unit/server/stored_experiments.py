"""An application without a server, and experiments in its store."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from riseml.base.settings import Settings
from riseml.base.states import State
from riseml.model import Experiment, Plan
from riseml.planning.plan import first_jobs
from riseml.server.app import Application, make_application
from riseml.server.services import Stores
from riseml.store.insertion import NewExperiments
from tests.support.callers import ME

NOW = datetime(2026, 8, 31, 7, 23, 46, tzinfo=UTC)


@contextmanager
def open_application(home: Path) -> Iterator[Application]:
    """Give an application whose jobs would run as processes; it starts nothing."""
    settings = Settings(home, home / "output", home / "data", executor="process")
    application = make_application(settings, threading.Event())
    yield application
    application.services.hosts.close()
    application.database.close()


def add_experiment(stores: Stores, plan: Plan, state: State = State.CREATED, *, closed: bool = False) -> Experiment:
    """Store an experiment in a state, as this server's user submits it."""
    new = NewExperiments(ME.owner, plan.project, "", "", ((plan, first_jobs(plan)),))
    ((detail,), _) = stores.experiments.add_experiments(new, NOW)
    if state is State.CREATED:
        return detail.experiment
    jobs = tuple(replace(job, state=state, started_at=NOW) for job in detail.experiment.jobs)
    after = replace(detail.experiment, state=state, jobs=jobs, closed=closed, started_at=NOW)
    assert stores.experiments.save_decision(detail.experiment, after, NOW)
    return stores.experiments.get_experiment(detail.experiment.id).experiment
