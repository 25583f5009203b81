"""A private PostgreSQL for tests, and the databases in it; the file of an empty SQLite store."""

from __future__ import annotations

import functools
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from riseml.store.database import Database
from riseml.store.schema import (
    api_keys,
    experiment_annotations,
    experiment_tags,
    experiments,
    kept_outputs,
    metric_histories,
    metric_tallies,
    milestones,
    placements,
    project_members,
    provider_subjects,
    quotas,
    registries,
    remarks,
    reports,
    run_secrets,
    secrets,
    sessions,
    sets,
    table_views,
    team_projects,
    trials,
    users,
    written_files,
)

SCRIPTS = Path(__file__).parents[2] / "scripts" / "postgres"


def start_postgres(*folder: Path) -> str:
    """Start PostgreSQL if it does not run, and return its address: the shared one, or one in its own folder."""
    return subprocess.run([SCRIPTS / "up", *folder], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def flatten_plans(connection: sa.Connection) -> None:
    """Make the plans of a store those of a version before 0014: with the keys of the policy beside the other ones. The
    columns of later versions go, too.

    Args:
        connection: a transaction that writes.
    """
    drop_later_columns(connection)
    for row in connection.execute(sa.select(experiments.c.id, experiments.c.plan)).all():
        change = experiments.update().where(experiments.c.id == row.id).values(plan=_flatten(row.plan))
        connection.execute(change)
    for row in connection.execute(sa.select(sets.c.id, sets.c.templates).where(sets.c.templates.is_not(None))).all():
        templates = [[values, _flatten(plan)] for values, plan in row.templates]
        connection.execute(sets.update().where(sets.c.id == row.id).values(templates=templates))


def drop_later_columns(connection: sa.Connection) -> None:
    """Make the tables of a store those of a version before 0015: without waits between attempts, without paused sets,
    without what several objectives and constraints of a search have, without what users say about experiments, and
    without users, team projects, quotas, sessions, secrets, saved views, reports and remarks.
    """
    of_accounts = (sessions, provider_subjects, api_keys, project_members, team_projects, users)
    of_secrets = (run_secrets, registries, secrets)
    of_users = (reports, table_views, *of_secrets, placements, quotas, *of_accounts)
    for table in (remarks, *of_users, experiment_tags, experiment_annotations):
        table.drop(connection)
    connection.execute(sa.text("DROP INDEX experiments_team_project"))
    later = {
        "experiments": ("waited", "waits_since", "team_project"),
        "sets": ("paused",),
        "trials": ("scores", "excess"),
    }
    for name, columns in later.items():
        for column in columns:
            connection.execute(sa.text(f"ALTER TABLE {name} DROP COLUMN {column}"))


def _flatten(plan: dict[str, Any]) -> dict[str, Any]:
    return {**{name: value for name, value in plan.items() if name != "policy"}, **plan["policy"]}


def go_back(connection: sa.Connection, revision: str) -> None:
    """Make a store one of an earlier version, as far as the next start has to add tables.

    Args:
        connection: a transaction that writes.
        revision: the migration of that version, before 0007.
    """
    flatten_plans(connection)
    for later in (written_files, milestones, kept_outputs, trials, metric_histories, metric_tallies):
        later.drop(connection)
    for column in ("search", "templates", "environment", "variables", "most_trials", "wanted", "search_end"):
        connection.execute(sa.text(f"ALTER TABLE sets DROP COLUMN {column}"))
    connection.execute(sa.text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})


def count_given_lines_again(connection: sa.Connection, revision: str) -> None:
    """Make positions in logs those of a version before 0012: with the lines that were given behind them.

    Args:
        connection: a transaction that writes.
        revision: the migration of that version.
    """
    flatten_plans(connection)
    written_files.drop(connection)
    connection.execute(sa.text("ALTER TABLE metric_tallies DROP COLUMN open_bytes"))
    connection.execute(sa.text("ALTER TABLE metric_tallies ADD COLUMN lines_given INTEGER NOT NULL DEFAULT 0"))
    connection.execute(sa.text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})


@contextmanager
def open_database(postgres: sa.Engine) -> Iterator[str]:
    """Create an empty database, give its address, and drop it afterwards."""
    name = f"test_{uuid.uuid4().hex}"
    with postgres.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    yield postgres.url.set(database=name).render_as_string(hide_password=False)
    with postgres.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")


@functools.cache
def make_new_store() -> bytes:
    """Return the file of an empty SQLite store: hundreds of tests and servers need one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "riseml.db"
        Database(f"sqlite:///{path}").close()
        return path.read_bytes()
