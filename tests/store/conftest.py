"""Each store in its turn: a SQLite file, and a database of a private PostgreSQL."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from riseml.store.database import Database
from riseml.store.experiments import Experiments

SCRIPTS = Path(__file__).parents[2] / "scripts" / "postgres"


@pytest.fixture(scope="session")
def postgres() -> sa.Engine:
    """The tests' PostgreSQL, which is started when it does not run."""
    done = subprocess.run([SCRIPTS / "up"], stdout=subprocess.PIPE, text=True, check=True)
    return sa.create_engine(done.stdout.strip(), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)


@pytest.fixture
def postgres_store(postgres: sa.Engine) -> Iterator[str]:
    """The address of an empty database of its own."""
    name = f"test_{uuid.uuid4().hex}"
    with postgres.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    yield postgres.url.set(database=name).render_as_string(hide_password=False)
    with postgres.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/riseml.db"
    return str(request.getfixturevalue("postgres_store"))


@pytest.fixture
def database(store: str) -> Iterator[Database]:
    made = Database(store)
    yield made
    made.close()


@pytest.fixture
def experiments(database: Database) -> Experiments:
    return Experiments(database)
