"""The metric counter: an error of one experiment does not hold up the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.base.names import JobName
from riseml.model import Frame, JobKey
from riseml.server.reconcile.metric_counter import MetricCounter
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.logs.blocks import LogBlock
from riseml.store.logs.log_store import LogStore
from riseml.store.logs.read_position import ReadPosition
from riseml.store.metrics.metric_rows import MetricRows
from riseml.store.metrics.metric_store import MetricStore
from tests.support.waiting import DEADLINE, wait_for
from tests.unit.store.submissions import submit


class OneUnreadableLog(LogStore):
    """The log of experiment 1 cannot be read."""

    def read_report_blocks(self, experiment: int, position: ReadPosition) -> tuple[list[LogBlock], ReadPosition]:
        if experiment == 1:
            raise OSError(5, "Input/output error")
        return super().read_report_blocks(experiment, position)


def test_a_log_that_cannot_be_read_holds_up_no_other(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/riseml.db")
    experiments, logs = ExperimentStore(database), OneUnreadableLog(tmp_path / "logs")
    found: set[int] = set()
    counter = MetricCounter(MetricStore(database, logs), found.update)
    for _ in range(3):
        identity = submit(experiments).id
        frame = Frame("2026-08-31T07:23:46.000000001Z", 1, b'\x1eriseml.report {"loss": 0.5}\n')
        logs.append_frames(JobKey(identity, JobName("master"), 1), [frame])
        counter.note_growth(identity)
    counter.note_closed(1)
    counter.start()
    wait_for("the other experiments are counted", lambda: found == {2, 3} or None, DEADLINE)
    counter.stop()
    saved = MetricRows(database).load_tallies([1, 2, 3])
    assert [one for one, tally in saved.items() if tally.summaries] == [2, 3]
    database.close()


def test_counts_are_saved_although_a_listener_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riseml.server.reconcile.metric_counter._SAVE_INTERVAL", 0.0)
    database = Database(f"sqlite:///{tmp_path}/riseml.db")
    logs = LogStore(tmp_path / "logs")
    counter = MetricCounter(MetricStore(database, logs))
    counter.call_when_counted(lambda _: [][1])
    identity = submit(ExperimentStore(database)).id
    frame = Frame("2026-08-31T07:23:46.000000001Z", 1, b'\x1eriseml.report {"loss": 0.5}\n')
    logs.append_frames(JobKey(identity, JobName("master"), 1), [frame])
    counter.note_growth(identity)
    counter._try_keep()
    assert MetricRows(database).load_tallies([identity])[identity].summaries
    database.close()
