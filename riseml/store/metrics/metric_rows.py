"""The rows of metrics: for each experiment what was counted and up to where, for each metric its history."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from riseml.base.records import dataclass
from riseml.store.database import Database
from riseml.store.logs.read_position import ReadPosition
from riseml.store.metrics.metric_history import MetricHistory
from riseml.store.metrics.metric_summary import (
    MetricSummary,
    read_many_summaries,
    read_stored_summaries,
    summary_to_row,
)
from riseml.store.schema import experiments, metric_histories, metric_tallies

_IDS_PER_QUERY = 1000


@dataclass(frozen=True, slots=True)
class TallyRow:
    """The counts of one experiment."""

    experiment: int
    counted: ReadPosition  # position in the log; everything before it is counted
    complete: bool  # the experiment was closed, and its whole log is counted
    summaries: Mapping[str, MetricSummary]
    dropped: int = 0  # values that were not kept, because there were too many names
    slow: frozenset[str] = frozenset()  # names of patterns that took too long, and are not searched any more
    tracked: frozenset[str] = frozenset()  # names whose first value was tracked


class MetricRows:
    """The metrics in one database. Safe from many threads."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load_tallies(self, experiments: Iterable[int]) -> dict[int, TallyRow]:
        """Return the tallies of these experiments, as far as there are any."""
        ids = list(experiments)
        tallies: dict[int, TallyRow] = {}
        with self._database.read_transaction() as connection:
            for start in range(0, len(ids), _IDS_PER_QUERY):
                some = metric_tallies.c.experiment_id.in_(ids[start : start + _IDS_PER_QUERY])
                for row in connection.execute(sa.select(metric_tallies).where(some)):
                    tallies[row.experiment_id] = _to_tally(row)
        return tallies

    def load_complete(self, experiments: Iterable[int]) -> dict[int, dict[str, MetricSummary]]:
        """Return the metrics of those of these experiments that are counted to their end."""
        ids = list(experiments)
        metrics: dict[int, dict[str, MetricSummary]] = {}
        columns = (metric_tallies.c.experiment_id, metric_tallies.c.summaries)
        with self._database.read_transaction() as connection:
            for start in range(0, len(ids), _IDS_PER_QUERY):
                some = metric_tallies.c.experiment_id.in_(ids[start : start + _IDS_PER_QUERY])
                rows = connection.execute(sa.select(*columns).where(some, metric_tallies.c.complete)).all()
                stored = read_many_summaries(text for _, text in rows)
                for (identity, _), summaries in zip(rows, stored, strict=True):
                    metrics[identity] = {summary.name: summary for summary in summaries.metrics}
        return metrics

    def load_history(self, experiment: int, metric: str) -> MetricHistory:
        """Return the history of a metric; an empty one when there is none."""
        query = sa.select(metric_histories.c.buckets).where(
            metric_histories.c.experiment_id == experiment, metric_histories.c.metric == metric
        )
        with self._database.read_transaction() as connection:
            text = connection.execute(query).scalar()
        return MetricHistory() if text is None else MetricHistory.from_rows(json.loads(text))

    def load_histories_of(self, experiments: Sequence[int], metric: str) -> dict[int, MetricHistory]:
        """Return the history of one metric of each of these experiments that has it."""
        table = metric_histories
        histories = dict[int, MetricHistory]()
        with self._database.read_transaction() as connection:
            for start in range(0, len(experiments), _IDS_PER_QUERY):
                some = table.c.experiment_id.in_(experiments[start : start + _IDS_PER_QUERY])
                for row in connection.execute(sa.select(table).where(some, table.c.metric == metric)):
                    histories[row.experiment_id] = MetricHistory.from_rows(json.loads(row.buckets))
        return histories

    def load_histories(self, experiment: int) -> dict[str, MetricHistory]:
        """Return the history of each metric of an experiment."""
        query = sa.select(metric_histories).where(metric_histories.c.experiment_id == experiment)
        with self._database.read_transaction() as connection:
            rows = connection.execute(query).all()
        return {row.metric: MetricHistory.from_rows(json.loads(row.buckets)) for row in rows}

    def save_tallies(self, tallies: Iterable[tuple[TallyRow, Mapping[str, str]]]) -> None:
        """Write tallies, and the histories that changed, by metric, in one transaction."""
        with self._database.write_transaction() as connection:
            for tally, histories in tallies:
                _upsert(connection, metric_tallies, {"experiment_id": tally.experiment}, _to_values(tally))
                for metric, buckets in histories.items():
                    key = {"experiment_id": tally.experiment, "metric": metric}
                    _upsert(connection, metric_histories, key, {"buckets": buckets})

    def delete_tally(self, experiment: int) -> None:
        """Delete the counts of an experiment."""
        with self._database.write_transaction() as connection:
            for table in (metric_histories, metric_tallies):
                connection.execute(table.delete().where(table.c.experiment_id == experiment))

    def list_incomplete(self) -> dict[int, bool]:
        """Return the experiments whose logs may hold uncounted reports, and whether each is closed."""
        query = (
            sa.select(experiments.c.id, experiments.c.closed)
            .outerjoin(metric_tallies, metric_tallies.c.experiment_id == experiments.c.id)
            .where(sa.or_(metric_tallies.c.complete.is_(None), metric_tallies.c.complete.is_(False)))
            .order_by(experiments.c.id)
        )
        with self._database.read_transaction() as connection:
            return {row.id: row.closed for row in connection.execute(query)}


def _upsert(connection: sa.Connection, table: sa.Table, key: dict[str, Any], values: dict[str, Any]) -> None:
    condition = sa.and_(*(table.c[name] == value for name, value in key.items()))
    if connection.execute(table.update().where(condition).values(**values)).rowcount == 0:
        connection.execute(table.insert().values(**key, **values))


def _to_values(tally: TallyRow) -> dict[str, Any]:
    rows = [summary_to_row(summary) for summary in tally.summaries.values()]
    last = {summary.name: summary.last if math.isfinite(summary.last) else None for summary in tally.summaries.values()}
    return {
        "counted": tally.counted.offset,
        "open_bytes": tally.counted.open_bytes,
        "complete": tally.complete,
        "dropped": tally.dropped,
        "summaries": json.dumps({"metrics": rows, "slow": sorted(tally.slow), "tracked": sorted(tally.tracked)}),
        "last_values": json.dumps(last, ensure_ascii=False),
    }


def _to_tally(row: sa.Row[Any]) -> TallyRow:
    stored = read_stored_summaries(row.summaries)
    return TallyRow(
        row.experiment_id,
        ReadPosition(row.counted, row.open_bytes),
        row.complete,
        {summary.name: summary for summary in stored.metrics},
        row.dropped,
        frozenset(stored.slow),
        frozenset(stored.tracked),
    )
