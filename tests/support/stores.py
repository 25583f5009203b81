"""A private PostgreSQL for tests, and databases in it."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

SCRIPTS = Path(__file__).parents[2] / "scripts" / "postgres"


def start_postgres(*folder: Path) -> str:
    """The address of the shared one, or of one in a folder of its own; it is started when it does not run."""
    return subprocess.run([SCRIPTS / "up", *folder], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


@contextmanager
def open_database(postgres: sa.Engine) -> Iterator[str]:
    """The address of an empty database."""
    name = f"test_{uuid.uuid4().hex}"
    with postgres.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    yield postgres.url.set(database=name).render_as_string(hide_password=False)
    with postgres.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
