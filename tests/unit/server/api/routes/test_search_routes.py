"""The route that pauses, resumes and stops a set, and changes how many of its experiments run at the same time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from riseml.base.settings import Settings
from riseml.base.states import Wanted
from riseml.model import SearchPlan
from riseml.planning.plan import first_jobs
from riseml.server.api.routes.search_routes import suggest_more
from riseml.server.app import Application, make_application
from riseml.spec.config.types import SearchMethod
from riseml.store.insertion import NewExperiments
from tests.support.callers import ME
from tests.support.searches import LR, make_search
from tests.unit.control.simulation import make_plan
from tests.unit.server.api.conftest import NOW, close_all, serve
from tests.unit.server.api.routes.test_experiment_routes import end

CHANGE = {"paused": None, "concurrency": None, "stop": False}


class Scene:
    """A server with a grid of two experiments (1), whose loop stands still, and a single experiment (2)."""

    def __init__(self, application: Application, client: httpx.Client) -> None:
        self.application = application
        self.stores = application.services.stores
        self._client = client
        for count, concurrency in ((2, 1), (1, None)):
            plan = make_plan("train")
            members = ((plan, first_jobs(plan)),) * count
            new = NewExperiments(ME.owner, "toaster", "", "", members, concurrency=concurrency)
            self.stores.experiments.add_experiments(new, NOW)

    def change(self, name: str = "1", **change: object) -> httpx.Response:
        return self._client.post(f"/v1/experiments/{name}/search", json={**CHANGE, **change})

    def end_all(self) -> None:
        for experiment in self.stores.experiments.load_world().experiments:
            end(self.application, experiment)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    settings = Settings(tmp_path, tmp_path / "o", tmp_path / "d", executor="process")
    made = make_application(settings, threading.Event())
    with serve(made.api) as url, httpx.Client(base_url=url, timeout=60) as client:
        yield Scene(made, client)
    close_all(made)
    made.database.close()


def test_a_set_is_paused_and_goes_on(scene: Scene) -> None:
    for _ in range(2):
        paused = scene.change(paused=True).json()
        assert (paused["state"], paused["reason"]) == ("CREATED", "PAUSED")
        assert paused["message"] == "Paused by a user: `riseml search 1 --resume` lets it go on"
    for _ in range(2):
        resumed = scene.change(paused=False, concurrency=2).json()
        assert resumed["reason"] == "SUBMITTED"
    assert {experiment.concurrency for experiment in scene.stores.experiments.load_world().experiments[:2]} == {2}


def test_a_grid_that_is_stopped_starts_nothing_further(scene: Scene) -> None:
    assert scene.change(stop=True).status_code == 200
    wanted = [experiment.wanted for experiment in scene.stores.experiments.load_world().experiments]
    assert wanted == [Wanted.KILL, Wanted.KILL, Wanted.RUN]
    assert scene.change(stop=True).status_code == 200, "once more changes nothing"
    refused = scene.change(paused=True)
    assert (refused.status_code, refused.json()["error"]["message"]) == (
        403,
        "set 1 was stopped, and starts nothing more",
    )


def test_a_set_that_has_ended_is_not_changed(scene: Scene) -> None:
    scene.end_all()
    for change in ({"paused": True}, {"paused": False}, {"concurrency": 2}):
        refused = scene.change(**change)
        assert (refused.status_code, refused.json()["error"]["message"]) == (403, "set 1 has ended")
    assert scene.change(stop=True).json()["state"] == "FINISHED", "nothing of it starts, as was asked"


@pytest.mark.parametrize(
    ("method", "advice"),
    [
        (None, "`riseml train` begins a new set"),
        (SearchMethod.GRID, "`riseml train` begins a new set"),
        (SearchMethod.TPE, "`riseml train 144 --trials 20` adds 20 trials"),
    ],
)
def test_further_trials_are_suggested_where_there_can_be_some(method: SearchMethod | None, advice: str) -> None:
    plan = None if method is None else SearchPlan(make_search(method), (LR,))
    assert suggest_more(144, plan) == advice


@pytest.mark.parametrize(
    ("name", "change", "status", "said"),
    [
        ("2", {"paused": True}, 400, "2 is not a set: it runs as one experiment"),
        ("1.1", {"stop": True}, 400, "1.1 is a member of set 1"),
        ("9", {"paused": False}, 404, ""),
        ("1", {"concurrency": 0}, 422, "body.concurrency"),
        ("1", {"concurrency": "many"}, 422, "body.concurrency"),
        ("1", {"paused": "perhaps"}, 422, "body.paused"),
    ],
)
def test_a_wrong_request_changes_nothing(
    scene: Scene, name: str, change: dict[str, object], status: int, said: str
) -> None:
    refused = scene.change(name, **change)
    assert (refused.status_code, said in refused.text) == (status, True), refused.text
    assert all(experiment.version == 1 for experiment in scene.stores.experiments.load_world().experiments)
