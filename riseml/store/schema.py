"""The tables. Times are UTC; JSON columns hold frozen dataclasses as cattrs writes them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)


class UtcDateTime(TypeDecorator[datetime]):
    """A moment in UTC. SQLite forgets the zone, so that it is put back when read."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.replace(tzinfo=UTC)


metadata = MetaData()


def _moment(name: str, **options: Any) -> Column[datetime]:
    return Column(name, UtcDateTime(), **options)


facts = Table(
    "facts",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)
"""Single facts about this store, the server's id among them."""

sets = Table(
    "sets",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("user", String(64), nullable=False),
    Column("number", Integer, nullable=False),
    Column("project", String(128), nullable=False),
    Column("concurrency", Integer, nullable=False),
    _moment("created_at", nullable=False),
    UniqueConstraint("user", "number"),
)

experiments = Table(
    "experiments",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("user", String(64), nullable=False),
    Column("uid", Integer, nullable=False),
    Column("gid", Integer, nullable=False),
    Column("number", Integer, nullable=False),
    Column("sub", Integer),
    Column("set_id", Integer, ForeignKey("sets.id")),
    Column("project", String(128), nullable=False),
    Column("config", Text, nullable=False),
    Column("plan", JSON, nullable=False),
    Column("snapshot", String(64), nullable=False),
    Column("environment", JSON, nullable=False),
    Column("notes", JSON, nullable=False),
    Column("key", String(64)),
    Column("wanted", String(16), nullable=False),
    Column("state", String(16), nullable=False),
    Column("reason", String(32), nullable=False),
    Column("message", Text, nullable=False),
    Column("verdict", JSON),
    Column("network", String(16), nullable=False, server_default="bridge"),
    Column("fabric", String(64)),
    Column("subnet", String(64)),
    Column("closed", Boolean, nullable=False),
    Column("version", Integer, nullable=False),
    _moment("created_at", nullable=False),
    _moment("placed_at"),
    _moment("started_at"),
    _moment("ended_at"),
    UniqueConstraint("user", "number", "sub"),
    Index("experiments_open", "closed", "user"),
    Index("experiments_project", "user", "project", "number"),
    Index("experiments_key", "user", "key"),
)

jobs = Table(
    "jobs",
    metadata,
    Column("experiment_id", Integer, ForeignKey("experiments.id"), primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("position", Integer, nullable=False),
    Column("record", JSON, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("experiment_id", Integer, ForeignKey("experiments.id"), nullable=False),
    Column("job", String(64)),
    Column("attempt", Integer, nullable=False),
    _moment("at", nullable=False),
    Column("state", String(16), nullable=False),
    Column("reason", String(32), nullable=False),
    Column("message", Text, nullable=False),
    Column("exit_code", Integer),
    Index("events_experiment", "experiment_id", "id"),
    sqlite_autoincrement=True,
)

drained_hosts = Table(
    "drained_hosts",
    metadata,
    Column("name", String(64), primary_key=True),
    _moment("at", nullable=False),
)
"""Hosts of the pool that get nothing new, by their names."""
