"""Experiments and sets: kills, curves, and which parameters decide."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from riseml.base.names import parse_id
from riseml.base.settings import Settings
from riseml.base.states import State
from riseml.model import Experiment
from riseml.planning.plan import first_jobs
from riseml.server.api.routes.experiment_routes import _request_kill
from riseml.server.app import Application, make_application
from riseml.spec.config.types import SaveSection
from riseml.store.insertion import NewExperiments
from tests.support.callers import ME
from tests.unit.control.simulation import change_policy, make_plan
from tests.unit.server.api.conftest import NOW, close_all


@pytest.fixture
def application(tmp_path: Path) -> Iterator[Application]:
    settings = Settings(tmp_path, tmp_path / "o", tmp_path / "d", executor="process")
    made = make_application(settings, threading.Event())
    yield made
    close_all(made)
    made.database.close()


def submit_set(application: Application) -> list[Experiment]:
    plan = change_policy(make_plan("train"), save=SaveSection("s3://runs"))
    new = NewExperiments(ME.owner, "toaster", "", "", ((plan, first_jobs(plan)),) * 2, concurrency=2)
    details, _ = application.services.stores.experiments.add_experiments(new, NOW)
    return [detail.experiment for detail in details]


def end(application: Application, one: Experiment) -> None:
    """End an experiment that waits for the last copy of its output."""
    before = application.services.stores.experiments.get_experiment(one.id).experiment
    after = replace(before, state=State.FINISHED, ended_at=NOW)
    assert application.services.stores.experiments.save_decision(before, after, NOW)


def test_the_kill_of_a_set_gives_copies_up_only_when_all_members_have_ended(application: Application) -> None:
    services = application.services
    first, second = submit_set(application)
    end(application, first)
    _request_kill(parse_id("1"), ME, services)
    assert services.data.saver.notes.read(first.id).given_up == 0, "it ends the other one"
    end(application, second)
    _request_kill(parse_id("1"), ME, services)
    assert [services.data.saver.notes.read(one.id).given_up for one in (first, second)] == [1, 1]


def test_the_kill_of_one_member_gives_its_copy_up_while_others_run(application: Application) -> None:
    first, _ = submit_set(application)
    end(application, first)
    _request_kill(parse_id("1.1"), ME, application.services)
    assert application.services.data.saver.notes.read(first.id).given_up == 1


def test_a_set_without_a_search_has_no_importance(client: httpx.Client) -> None:
    for name in ("1", "2", "2.1"):
        answer = client.get(f"/v1/experiments/{name}/importance")
        assert answer.status_code == 400
        assert "is not a set with a search" in answer.json()["error"]["message"]
    assert client.get("/v1/experiments/99/importance").status_code == 404


def test_a_set_without_reports_has_no_curves(client: httpx.Client) -> None:
    found = client.get("/v1/experiments/2/curves", params={"metric": "<b>loss</b>"}).json()
    assert found == {"metric": "<b>loss</b>", "total": 0, "curves": []}
