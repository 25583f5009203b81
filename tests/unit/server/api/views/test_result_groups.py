"""The points of a set over their seeds, from records and logs to the answer."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from riseml.base.errors import UsageError
from riseml.base.names import JobName
from riseml.base.settings import Settings
from riseml.base.states import State
from riseml.model import Frame, JobKey
from riseml.server.api.views.result_groups import read_groups
from riseml.server.api.views.results import ResultQuery
from riseml.server.app import make_application
from riseml.server.services import Services
from tests.support.callers import ME
from tests.support.rig import single
from tests.unit.server.api.views.test_results import NOW, add, finish

VALUES = ((0.5, 0.6), (0.7,), (0.9, 0.8), (0.1, 0.2), (0.4, float("nan")), (0.4,))
"""What the six experiments of the set have reported: two points with three seeds; the fifth diverges."""


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """A server with one set. The tests only read it."""
    home = tmp_path_factory.mktemp("groups")
    made = make_application(Settings(home, home / "output", home / "data", executor="process"), threading.Event())
    add(made.services, single("t {{lr}} {{seed}}", parameters={"lr": [0.1, 0.01], "epochs": 20}, repeat=3))
    for sub, values in enumerate(VALUES, 1):
        finish(made.services, sub, State.FINISHED)
        lines = [f'riseml.report {{"step": {at}, "accuracy": {value}}}\n' for at, value in enumerate(values)]
        frames = [Frame("2026-08-31T07:23:46.1Z", 1, line.encode()) for line in lines]
        made.services.stores.logs.append_frames(JobKey(sub, JobName("train"), 1), frames)
    yield made.services
    made.database.close()


def test_runs_that_differ_in_their_seed_are_one_point(services: Services) -> None:
    found = read_groups(ResultQuery(("1",), sort="-accuracy"), None, ME, services.stores, NOW)
    first, second = found["groups"]
    assert (first["ids"], first["rank"], first["n"]) == (["1.1", "1.2", "1.3"], 1, 3)
    assert first["mean"] == pytest.approx((0.6 + 0.7 + 0.9) / 3)
    assert first["deviation"] == pytest.approx(0.152753, abs=1e-6)
    assert (found["parameters"], found["same"], found["column"]) == (["lr"], {"epochs": "20"}, "accuracy")
    assert (second["rank"], second["failed"], second["n"]) == (None, 1, 2)
    assert found["best_run"] == {"id": "1.3", "seed": "3", "value": 0.9}


def test_without_a_goal_the_only_metric_is_grouped_and_nothing_ranks(services: Services) -> None:
    found = read_groups(ResultQuery(("1",)), None, ME, services.stores, NOW)
    assert (found["objective"], found["best_run"], found["column"]) == (None, None, "accuracy")
    assert found["groups"][0]["mean"] == pytest.approx((0.6 + 0.7 + 0.8) / 3), "the last values"


def test_another_column_has_no_ranks(services: Services) -> None:
    found = read_groups(ResultQuery(("1",), sort="-accuracy"), "accuracy.min", ME, services.stores, NOW)
    assert [group["rank"] for group in found["groups"]] == [None, None]
    assert found["groups"][0]["mean"] == pytest.approx((0.5 + 0.7 + 0.8) / 3)


def test_an_unknown_column_is_refused(services: Services) -> None:
    with pytest.raises(UsageError, match="there is no column 'speed'"):
        read_groups(ResultQuery(("1",)), "speed", ME, services.stores, NOW)
