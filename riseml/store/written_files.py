"""What jobs wrote outside of OUTPUT_DIR: how much of it was kept there, and what was lost."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import sqlalchemy as sa

from riseml.base.records import dataclass
from riseml.model import JobKey
from riseml.store.codec import from_json, to_json
from riseml.store.database import Database
from riseml.store.schema import written_files


@dataclass(frozen=True, slots=True)
class WrittenRecord:
    """The files that one attempt of a job made or changed outside of OUTPUT_DIR."""

    kept_files: int = 0  # that are in OUTPUT_DIR now
    kept_bytes: int = 0
    kept_names: tuple[str, ...] = ()  # the first of them: `model.pt`, `runs/...`
    lost_files: int = 0
    lost_bytes: int = 0
    lost_names: tuple[str, ...] = ()
    advice: str = ""  # the line of riseml.yml that keeps the lost files; empty: none does
    trouble: str = ""  # why a file that was to be kept is lost
    more: bool = False  # the job has written more than was counted

    @property
    def is_empty(self) -> bool:
        """True when there is nothing to say."""
        return not (self.kept_files or self.lost_files or self.trouble)


class WrittenStore:
    """These records in one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load_record(self, key: JobKey) -> WrittenRecord | None:
        """Return the record of one attempt of a job; None: it has none yet."""
        with self._database.read_transaction() as connection:
            query = sa.select(written_files.c.record).where(*_match_key(key))
            record = connection.execute(query).scalar()
        return None if record is None else from_json(record, WrittenRecord)

    def load_last(self, experiments: Collection[int]) -> Mapping[int, list[WrittenRecord]]:
        """Return the record of the last attempt of each job that has one, by the key of the experiment."""
        columns = (written_files.c.experiment_id, written_files.c.job, written_files.c.record)
        query = sa.select(*columns).where(written_files.c.experiment_id.in_(experiments))
        last: dict[tuple[int, str], WrittenRecord] = {}
        with self._database.read_transaction() as connection:
            for experiment, job, record in connection.execute(query.order_by(written_files.c.attempt)):
                last[experiment, job] = from_json(record, WrittenRecord)
        records: dict[int, list[WrittenRecord]] = {}
        for (experiment, _), written in last.items():
            records.setdefault(experiment, []).append(written)
        return records

    def save_record(self, key: JobKey, record: WrittenRecord) -> None:
        """Store the record of one attempt of a job, in place of an earlier one."""
        with self._database.write_transaction() as connection:
            connection.execute(written_files.delete().where(*_match_key(key)))
            connection.execute(
                written_files.insert().values(
                    experiment_id=key.experiment, job=key.job, attempt=key.attempt, record=to_json(record)
                )
            )


def _match_key(key: JobKey) -> tuple[sa.ColumnElement[bool], ...]:
    table = written_files.c
    return table.experiment_id == key.experiment, table.job == key.job, table.attempt == key.attempt
