"""A rule of stopping that begins before the first reported step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from riseml.base.names import JobName
from riseml.model import Frame, JobKey
from riseml.server.api.merged_log.set_growth import SetGrowth
from riseml.server.api.views.first_report import explain_early_rule
from riseml.spec.config.types import StopMethod, StopRule
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.logs.log_store import LogStore
from riseml.store.metrics.metric_store import MetricStore
from tests.support.searches import LAYERS, SearchRig, make_search

EARLY = (
    "search.stop.after is 3, before the first reported step 100: trials are compared at their first report,"
    " and a larger `after` gives them time"
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(f"sqlite:///{tmp_path}/riseml.db")
    yield database
    database.close()


@pytest.mark.parametrize(
    ("stop", "steps", "said"),
    [
        (StopRule(StopMethod.ASHA, after=3, factor=3), (100, 200), EARLY),
        (StopRule(StopMethod.MEDIAN, after=3), (100, 200), EARLY),
        (StopRule(StopMethod.ASHA, after=100, factor=3), (100, 200), ""),
        (StopRule(StopMethod.ASHA, after=3, factor=3), (1, 2, 3), ""),
        (StopRule(StopMethod.ASHA, after=300, factor=3), (100, 200), ""),
        (None, (100, 200), ""),
    ],
)
def test_a_rule_before_the_first_report_is_named_once_it_is_known(
    database: Database, tmp_path: Path, stop: StopRule | None, steps: tuple[int, ...], said: str
) -> None:
    rig = SearchRig(database, make_search(trials=1, stop=stop), (LAYERS,))
    logs = LogStore(tmp_path / "logs")
    metrics = MetricStore(database, logs)
    assert explain_early_rule(rig.record(), metrics) == ""
    rig.loop.run_pass()
    rig.place(1)
    assert explain_early_rule(rig.record(), metrics) == "", "no trial has reported"
    for step in steps:
        rig.report(1, 0.5, step)
        line = f'\x1eriseml.report {{"step": {step}, "accuracy": 0.5}}\n'
        key = JobKey(rig.trial(1).experiment, JobName("train"), 1)
        logs.append_frames(key, [Frame("2026-08-31T07:23:46.000000001Z", 1, line.encode())])
    rig.loop.run_pass()
    assert explain_early_rule(rig.record(), metrics) == said
    rig.end(1)
    rig.loop.run_pass()
    members = [ExperimentStore(database).get_experiment(rig.trial(1).experiment).experiment]
    end = SetGrowth(rig.searches, metrics, rig.set_id).describe_end(members)
    assert end.endswith(f"; {said}") if said else "search.stop" not in end
