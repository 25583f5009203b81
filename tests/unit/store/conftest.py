"""Both kinds of store in turn: a SQLite file, and a database of a private PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of an empty store."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/riseml.db"
    return str(request.getfixturevalue("postgres_store"))


@pytest.fixture
def database(store: str) -> Iterator[Database]:
    made = Database(store)
    yield made
    made.close()


@pytest.fixture
def experiments(database: Database) -> ExperimentStore:
    return ExperimentStore(database)
