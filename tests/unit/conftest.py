"""Fixtures of the tests without an engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from riseml.store.database import Database
from tests.support.stores import make_new_store

_MIGRATED_ANEW = ("test_database.py", "test_database_errors.py")
"""Tests of the migrations themselves."""


@pytest.fixture(scope="session")
def new_store_file() -> bytes:
    """The file of an empty SQLite store, made before any test changes how stores are opened."""
    return make_new_store()


@pytest.fixture(autouse=True)
def close_databases(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, new_store_file: bytes
) -> Iterator[None]:
    """Fill every new SQLite file with an empty store, and close every database that a test opens: Python 3.13 warns
    about SQLite connections left open.
    """
    opened: list[Database] = []
    open_database = Database._open_database
    fills = request.path.name not in _MIGRATED_ANEW

    def note_and_open(database: Database) -> None:
        opened.append(database)
        if fills and database.url.get_backend_name() == "sqlite":
            path = Path(str(database.url.database))
            if path.stat().st_size == 0:
                path.write_bytes(new_store_file)
        open_database(database)

    monkeypatch.setattr(Database, "_open_database", note_and_open)
    yield
    for database in opened:
        database.close()
