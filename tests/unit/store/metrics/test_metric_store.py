"""The metrics of a store equal those of the log, whenever the server stops, saves or answers."""

from __future__ import annotations

import json
import math
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.base.errors import StoreError
from riseml.base.names import JobName
from riseml.model import Frame, JobKey
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.logs.blocks import LogBlock
from riseml.store.logs.log_store import LogStore
from riseml.store.logs.read_position import ReadPosition
from riseml.store.metrics.metric_rows import MetricRows
from riseml.store.metrics.metric_store import MetricStore
from riseml.store.metrics.metric_tally import MOST_METRICS, MetricTally, read_reports
from riseml.store.schema import experiments as experiment_table
from riseml.store.schema import metric_histories, metric_tallies
from tests.support.stores import count_given_lines_again
from tests.unit.store.submissions import submit

KEY = JobKey(1, JobName("master"), 1)
WORKER = JobKey(1, JobName("worker.1"), 2)


def write(logs: LogStore, key: JobKey, *texts: str) -> None:
    """Write pieces of output; all have one timestamp."""
    logs.append_frames(key, [Frame("2026-08-31T07:23:46.000000001Z", 1, text.encode()) for text in texts])


def report(step: int, **values: object) -> str:
    pairs = ", ".join(f'"{name}": {value}' for name, value in {"step": step, **values}.items())
    return f"\x1eriseml.report {{{pairs}}}\n"


def show(metrics: MetricStore, experiment: int = 1) -> object:
    """Return everything that is known of an experiment."""
    names = metrics.read_summaries([experiment]).get(experiment, {})
    return names, {name: metrics.read_history(experiment, name) for name in names}


def test_a_peek_has_the_last_values_that_are_counted_and_reads_no_log(
    database: Database, experiments: ExperimentStore, tmp_path: Path
) -> None:
    submit(experiments)
    logs = LogStore(tmp_path / "logs")
    metrics = MetricStore(database, logs)
    write(logs, KEY, report(1, loss=0.5, acc="NaN"), report(2, loss=0.25))
    assert metrics.peek_last_values([1, 2]) == {}
    metrics.count_reports(1)
    write(logs, KEY, report(3, loss=0.125))
    values = metrics.peek_last_values([1, 2])
    assert (values, list(values[1])) == ({1: {"loss": 0.25, "acc": None}}, ["loss", "acc"])
    metrics.note_closed(1)
    metrics.count_reports(1)
    metrics.save()
    assert metrics.peek_last_values([1]) == {}, "it is complete, and the store has it"


def test_values_of_all_jobs_are_those_of_the_experiment(
    database: Database, experiments: ExperimentStore, tmp_path: Path
) -> None:
    submit(experiments)
    logs = LogStore(tmp_path / "logs")
    metrics = MetricStore(database, logs)
    assert metrics.read_summaries([1, 2]) == {}
    write(logs, KEY, report(1, loss=0.5, acc="NaN"), "a line\n", report(2, loss=0.25))
    write(logs, WORKER, "50 %", report(2, loss=0.75), report(1, loss=0.125))
    found = metrics.read_summaries([1])[1]
    assert list(found) == ["loss", "acc"]
    loss = found["loss"]
    assert (loss.count, loss.last, loss.last_step, loss.attempt) == (4, 0.125, 1, 2)
    assert (loss.minimum, loss.minimum_step, loss.maximum, loss.maximum_step) == (0.125, 1, 0.75, 2)
    assert (found["acc"].minimum, found["acc"].not_finite, repr(found["acc"].last)) == (None, 1, "nan")
    page = metrics.read_values(1, "loss")
    assert [(one.step, one.value, one.job) for one in page.values] == [
        *((1, 0.5, "master"), (2, 0.25, "master")),
        *((2, 0.75, "worker.1"), (1, 0.125, "worker.1")),
    ]
    write(logs, KEY, report(3, loss=0.0625))
    more = metrics.read_values(1, "loss", page.end)
    assert [one.value for one in more.values] == [0.0625]
    assert metrics.read_values(1, "loss", more.end).complete


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        ((0.5, math.nan), (math.nan, math.inf), 3),
        ((math.nan, math.nan), (0.5, math.nan), 1),
        ((math.nan, math.nan), (0.5, 0.25), 0),
    ],
)
def test_values_that_are_not_finite_are_counted_back_from_the_last_one_also_by_the_next_server(
    database: Database,
    experiments: ExperimentStore,
    tmp_path: Path,
    first: tuple[float, ...],
    second: tuple[float, ...],
    count: int,
) -> None:
    submit(experiments)
    logs = LogStore(tmp_path / "logs")
    metrics = MetricStore(database, logs)
    write(logs, KEY, *(report(step, loss=json.dumps(value)) for step, value in enumerate(first)))
    metrics.count_reports(1)
    metrics.save()
    later = MetricStore(database, logs)
    write(logs, KEY, *(report(step, loss=json.dumps(value)) for step, value in enumerate(second, len(first))))
    later.count_reports(1)
    lost = later.peek_not_finite([1, 2])
    peeked = [(one.name, one.last_not_finite, one.last_step) for one in lost.get(1, [])]
    assert peeked == [("loss", count, 3)] * (count > 0)
    assert later.read_summaries([1])[1]["loss"].last_not_finite == count


def test_a_closed_experiment_without_a_log_is_taken_up_once(
    database: Database, experiments: ExperimentStore, tmp_path: Path
) -> None:
    submit(experiments)
    with database.write_transaction() as connection:
        connection.execute(experiment_table.update().values(closed=True))
    logs = LogStore(tmp_path / "logs")
    first = MetricStore(database, logs)
    assert first.recover() == {1}
    first.save()
    assert MetricStore(database, logs).recover() == frozenset()


def test_counts_that_a_reader_opens_again_after_the_end_do_not_stay_in_memory(
    database: Database, experiments: ExperimentStore, tmp_path: Path
) -> None:
    submit(experiments)
    logs = LogStore(tmp_path / "logs")
    write(logs, replace(KEY, experiment=1), report(1, loss=0.5))
    metrics = MetricStore(database, logs)
    metrics.count_reports(1)
    metrics.note_closed(1)
    metrics.save()
    metrics.count_reports(1)  # a reader that found it open before the save
    metrics.save()
    assert metrics._open == {}
    assert metrics.read_summaries([1])[1]["loss"].last == 0.5


def test_a_count_goes_on_where_it_was_saved(database: Database, experiments: ExperimentStore, tmp_path: Path) -> None:
    """Three servers in a row; the last one sees the end of the experiment, and keeps nothing in memory."""
    submit(experiments)
    logs = LogStore(tmp_path / "logs")
    first = MetricStore(database, logs)
    write(logs, KEY, *(report(step, loss=step) for step in range(600)))
    assert first.count_reports(1)
    first.save()
    write(logs, KEY, *(report(step, loss=-step) for step in range(600)))
    assert first.count_reports(1)  # and the server is killed before it saves
    second = MetricStore(database, logs)
    assert second.recover() == {1}
    expected = show(MetricStore(database, logs))
    assert show(second) == show(first) == expected
    with database.write_transaction() as connection:
        connection.execute(experiment_table.update().values(closed=True))
    third = MetricStore(database, logs)
    assert third.recover() == {1}
    third.save()
    assert show(third) == expected
    logs.close_experiment(1)
    (tmp_path / "logs" / "1.log").unlink()
    last = MetricStore(database, logs)
    assert last.recover() == frozenset()
    assert show(last) == expected


@pytest.fixture(scope="module")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a store with one experiment; migrations take longer than a test."""
    path = tmp_path_factory.mktemp("empty") / "riseml.db"
    database = Database(f"sqlite:///{path}")
    submit(ExperimentStore(database))
    database.close()
    return path


@settings(max_examples=50, deadline=None)
@given(acts=st.lists(st.sampled_from(["append", "count", "save", "fail", "kill", "ask"]), min_size=5, max_size=25))
def test_nothing_is_lost_or_doubled_whenever_the_server_dies(
    tmp_path_factory: pytest.TempPathFactory, empty_store: Path, acts: list[str]
) -> None:
    """The same log gives the same metrics, whatever happened to the servers that counted it."""
    folder = tmp_path_factory.mktemp("store")
    shutil.copy(empty_store, folder / "riseml.db")
    database = Database(f"sqlite:///{folder}/riseml.db")
    logs = LogStore(folder / "logs")
    metrics, step = MetricStore(database, logs), 0
    for act in acts:
        if act == "append":
            write(logs, KEY, report(step, loss=step % 7), "text", "\x1erise", f'ml.report {{"loss": {step}}}\n')
            write(logs, WORKER, "open ", *(report(step, acc=number) for number in range(10)))
            step += 1
        elif act == "count":
            metrics.count_reports(1)
        elif act == "save":
            metrics.save()
        elif act == "ask":
            metrics.read_summaries([1])
        elif act == "fail":
            fail_to_save(metrics, database)
        else:
            logs = LogStore(folder / "logs")
            metrics = MetricStore(database, logs)
            metrics.recover()
    tally = MetricTally()
    for block in logs.read_blocks(1, ReadPosition(), reports=True)[0]:
        for one in read_reports([block]):
            tally.add_report(one)
    counts = {name: tally.find_count(name) for name in tally.summarize()}
    assert show(metrics) == (
        tally.summarize(),
        {name: count.history.read_buckets() for name, count in counts.items() if count},
    )
    assert sum(one.count for one in tally.summarize().values()) == step * 12
    database.close()


def fail_to_save(metrics: MetricStore, database: Database) -> None:
    """Let one save fail: another program has removed the table."""
    with database.write_transaction() as connection:
        connection.exec_driver_sql("ALTER TABLE metric_histories RENAME TO away")
    with suppress(sa.exc.OperationalError, StoreError):
        metrics.save()
    with database.write_transaction() as connection:
        connection.exec_driver_sql("ALTER TABLE away RENAME TO metric_histories")


def test_a_log_that_lost_its_end_is_counted_again(
    database: Database, experiments: ExperimentStore, tmp_path: Path
) -> None:
    """After a power cut the engine brings the lines again, perhaps in another order."""
    submit(experiments)
    logs = LogStore(tmp_path / "logs")
    metrics = MetricStore(database, logs)
    write(logs, KEY, report(1, loss=1), report(2, loss=2), report(3, loss=3))
    metrics.count_reports(1)
    metrics.save()
    path = tmp_path / "logs" / "1.log"
    path.write_bytes(path.read_bytes()[:-10])
    logs = LogStore(tmp_path / "logs")
    MetricStore(database, logs).recover()
    write(
        logs, KEY, "a line that came first\n", report(3, loss=3), report(4, loss=4)
    )  # the log is longer than before; this server saves nothing
    again = MetricStore(database, logs)
    again.recover()
    assert [bucket.mean for bucket in again.read_history(1, "loss")] == [1, 2, 3, 4]


def test_too_many_names_are_bounded_and_counted(
    database: Database, experiments: ExperimentStore, tmp_path: Path
) -> None:
    submit(experiments)
    logs = LogStore(tmp_path / "logs")
    metrics = MetricStore(database, logs)
    for start in range(0, 10_000, 1000):
        write(logs, KEY, *(report(-1, **{f"m{number}": 1}) for number in range(start, start + 1000)))
    found = metrics.read_tallies([1])[1]
    assert (len(found.summaries), found.dropped) == (MOST_METRICS, 10_000 - MOST_METRICS)
    assert found.summaries["m0"].last_step == -1
    metrics.save()
    with database.read_transaction() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(metric_histories)).scalar() == MOST_METRICS
        assert connection.execute(sa.select(metric_tallies.c.dropped)).scalar() == found.dropped


def test_what_is_not_a_whole_piece_of_the_log_is_not_counted(
    database: Database, experiments: ExperimentStore, tmp_path: Path
) -> None:
    """A full disk takes the beginning of a piece, which the server cuts off and writes again later."""
    submit(experiments)
    logs = LogStore(tmp_path / "logs")
    write(logs, KEY, report(1, loss=1))
    with (tmp_path / "logs" / "1.log").open("ab") as file:
        file.write(b"1 master 1 2026-08-31T07:23:46Z " + report(2, loss=2).encode())
    metrics = MetricStore(database, logs)
    assert metrics.read_summaries([1])[1]["loss"].count == 1
    assert metrics.read_values(1, "loss").end.offset == logs.log_size(1)
    assert logs.read_blocks(1, ReadPosition()) == ([], ReadPosition(logs.log_size(1)))


class BrokenLogs(LogStore):
    """Logs of which that of one experiment cannot be read."""

    broken: int | None = None

    def read_report_blocks(self, experiment: int, position: ReadPosition) -> tuple[list[LogBlock], ReadPosition]:
        if experiment == self.broken:
            raise OSError(24, "Too many open files")
        return super().read_report_blocks(experiment, position)


def test_a_log_that_cannot_be_read_does_not_hold_up_the_save_of_others(
    database: Database, experiments: ExperimentStore, tmp_path: Path
) -> None:
    logs = BrokenLogs(tmp_path / "logs")
    metrics = MetricStore(database, logs)
    for identity in (1, 2, 3):
        submit(experiments)
        write(logs, replace(KEY, experiment=identity), report(1, loss=0.5))
        metrics.count_reports(identity)
    metrics.note_closed(2)
    logs.broken = 2
    with pytest.raises(OSError, match="open files"):
        metrics.save()
    assert [bool(MetricRows(database).load_histories(one)) for one in (1, 2, 3)] == [True, False, True]
    logs.broken = None
    metrics.save()
    assert MetricRows(database).load_tallies([2])[2].complete
    assert MetricRows(database).load_history(2, "loss").read_buckets()


def test_an_experiment_without_its_histories_is_counted_again(
    database: Database, experiments: ExperimentStore, tmp_path: Path
) -> None:
    submit(experiments)
    logs = LogStore(tmp_path / "logs")
    metrics = MetricStore(database, logs)
    write(logs, KEY, report(1, loss=0.5))
    metrics.count_reports(1)
    metrics.save()
    shown = show(metrics)
    with database.write_transaction() as connection:
        connection.execute(metric_histories.delete())
    again = MetricStore(database, logs)
    assert again.recover() == {1}
    assert show(again) == shown


def test_logs_that_an_earlier_version_has_not_counted_to_their_end_are_counted_again(
    database: Database, store: str, experiments: ExperimentStore, tmp_path: Path
) -> None:
    """It may have lost reports among lines that were open at the same time."""
    submit(experiments)
    submit(experiments)
    logs = LogStore(tmp_path / "logs")
    metrics = MetricStore(database, logs)
    for experiment in (1, 2):
        write(logs, replace(KEY, experiment=experiment), report(1, loss=0.5), report(2, loss=0.25))
        metrics.count_reports(experiment)
    metrics.note_closed(1)
    metrics.save()
    shown = [show(metrics, experiment) for experiment in (1, 2)]
    with database.write_transaction() as connection:
        connection.execute(experiment_table.update().where(experiment_table.c.id == 1).values(closed=True))
        connection.execute(metric_tallies.update().values(counted=1, summaries='{"metrics": [], "slow": []}'))
        count_given_lines_again(connection, "0011")
    database.close()
    again = MetricStore(Database(store), logs)
    assert again.recover() == {2}, "the counts of an experiment that has ended are final"
    assert show(again, 2) == shown[1]


def test_a_log_that_cannot_be_read_keeps_its_counts_and_holds_up_no_server(
    database: Database, experiments: ExperimentStore, tmp_path: Path
) -> None:
    submit(experiments)
    logs = LogStore(tmp_path / "logs")
    metrics = MetricStore(database, logs)
    write(logs, KEY, report(1, loss=0.5))
    metrics.count_reports(1)
    metrics.save()
    logs.close_experiment(1)
    (tmp_path / "logs" / "1.log").unlink()
    (tmp_path / "logs" / "1.log").mkdir()
    again = MetricStore(database, LogStore(tmp_path / "logs"))
    assert again.recover() == {1}
    assert again.read_summaries([1])[1]["loss"].last == 0.5


def test_a_log_that_was_lost_and_has_grown_again_is_counted_from_its_beginning(
    database: Database, experiments: ExperimentStore, tmp_path: Path
) -> None:
    submit(experiments)
    logs = LogStore(tmp_path / "logs")
    metrics = MetricStore(database, logs)
    write(logs, KEY, report(1, loss=0.5))
    metrics.count_reports(1)
    metrics.save()
    logs.close_experiment(1)
    (tmp_path / "logs" / "1.log").unlink()
    write(logs, KEY, "a longer line than the report that the log began with before it was lost\n", report(2, loss=0.25))
    again = MetricStore(database, logs)
    again.recover()
    assert again.read_summaries([1])[1]["loss"].count == 1
    assert again.read_summaries([1])[1]["loss"].last == 0.25
