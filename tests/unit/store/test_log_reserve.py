"""Space that is reserved for kills and decisions when the disk of SQLite's file is full."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from riseml.base.errors import StoreError
from riseml.store import database as database_module
from riseml.store.database import Database
from riseml.store.schema import drained_hosts

NOW = datetime(2026, 11, 27, tzinfo=UTC)


@pytest.fixture
def database(tmp_path: Path) -> Database:
    made = Database(f"sqlite:///{tmp_path}/riseml.db")
    write_row(made, "first")
    return made


def write_row(database: Database, name: str, *, vital: bool = False) -> None:
    with database.write_transaction(vital=vital) as connection:
        connection.execute(drained_hosts.insert().values(name=name, at=NOW))


def test_the_log_has_its_space_from_the_first_write_on(database: Database, tmp_path: Path) -> None:
    log = tmp_path / "riseml.db-wal"
    found = log.stat()
    assert (found.st_size, found.st_blocks * 512 >= found.st_size) == (database_module._LOG_RESERVE, True)
    for number in range(50):
        write_row(database, f"host{number}")
    assert log.stat().st_blocks == found.st_blocks, "these writes took no space of the disk"
    with database.read_transaction() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(drained_hosts)).scalar_one() == 51
    database.close()
    again = Database(f"sqlite:///{tmp_path}/riseml.db")
    write_row(again, "last")
    assert log.stat().st_size == database_module._LOG_RESERVE
    again.close()


def test_on_a_full_disk_only_vital_writes_are_made(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "_count_free", lambda file: 4096)
    with pytest.raises(StoreError, match="cannot grow: its disk is full"):
        write_row(database, "other")
    write_row(database, "vital", vital=True)
    assert not database.empty_write_ahead_log(), "the space of the log stays"
    assert (tmp_path / "riseml.db-wal").stat().st_size == database_module._LOG_RESERVE
    monkeypatch.undo()
    assert database.empty_write_ahead_log()
    write_row(database, "other")
    assert (tmp_path / "riseml.db-wal").stat().st_size == database_module._LOG_RESERVE
    database.close()
