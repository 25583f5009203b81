"""The members that a search adds to a set while its log is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from riseml.server.api.merged_log.set_growth import SetGrowth
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.logs.log_store import LogStore
from riseml.store.metrics.metric_store import MetricStore
from riseml.store.searches import SearchStore
from tests.support.searches import LAYERS, SearchRig, make_search


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(f"sqlite:///{tmp_path}/riseml.db")
    yield database
    database.close()


def test_members_are_added_until_the_search_ends(database: Database, tmp_path: Path) -> None:
    rig = SearchRig(database, make_search(trials=2), (LAYERS,), concurrency=1)
    logs = LogStore(tmp_path / "logs")
    growth = SetGrowth(SearchStore(database), MetricStore(database, logs), rig.record().id)
    rig.loop.run_pass()
    assert len(growth.list_members()) == 1
    for number, value in ((1, 0.5), (2, 0.9)):
        assert growth.goes_on()
        rig.place(number)
        rig.report(number, value)
        rig.end(number)
        rig.loop.run_pass()
        rig.loop.run_pass()
    rig.loop.run_pass()
    assert not growth.goes_on()
    first, second = growth.list_members()
    store = ExperimentStore(database)
    members = [store.get_experiment(member).experiment for member in (first, second)]
    assert [member.sub for member in members] == [1, 2]
    assert "best" in growth.describe_end(members)
