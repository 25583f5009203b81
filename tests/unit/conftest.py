"""Fixtures of the tests without an engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from riseml.store.database import Database


@pytest.fixture(autouse=True)
def close_databases(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close every database that a test opens: Python 3.13 warns about SQLite connections left open."""
    opened: list[Database] = []
    open_database = Database._open

    def note_and_open(database: Database) -> None:
        opened.append(database)
        open_database(database)

    monkeypatch.setattr(Database, "_open", note_and_open)
    yield
    for database in opened:
        database.close()
