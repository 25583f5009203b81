"""What users have marked: outputs that stay (`riseml keep`), and hosts without new jobs (`riseml pool drain`)."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

import sqlalchemy as sa

from riseml.base.names import HostName
from riseml.store.database import Database
from riseml.store.schema import drained_hosts, experiments, kept_outputs


class KeptOutputs:
    """The kept outputs in one database; riseml removes none of them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load_kept(self) -> frozenset[int]:
        """Return the ids of their experiments."""
        with self._database.read_transaction() as connection:
            return _select_kept_ids(connection)

    def keep(self, experiments: Sequence[int], moment: datetime) -> None:
        """Keep outputs; outputs that are kept already stay kept."""
        with self._database.write_transaction() as connection:
            kept_ids = _select_kept_ids(connection)
            rows = [
                {"experiment_id": experiment, "at": moment} for experiment in experiments if experiment not in kept_ids
            ]
            if rows:
                connection.execute(sa.insert(kept_outputs), rows)

    def release(self, experiments: Sequence[int]) -> None:
        """Stop keeping outputs."""
        with self._database.write_transaction() as connection:
            for experiment in experiments:
                connection.execute(sa.delete(kept_outputs).where(kept_outputs.c.experiment_id == experiment))


def is_set_kept(connection: sa.Connection, set_id: int) -> bool:
    """Return True when the outputs of all experiments that a set has are kept."""
    members = sa.select(experiments.c.id).where(experiments.c.set_id == set_id)
    unkept_members = members.where(experiments.c.id.not_in(sa.select(kept_outputs.c.experiment_id)))
    return connection.execute(unkept_members.limit(1)).first() is None


def _select_kept_ids(connection: sa.Connection) -> frozenset[int]:
    return frozenset(connection.execute(sa.select(kept_outputs.c.experiment_id)).scalars())


class DrainedHosts:
    """The drained hosts in one database; they stay drained when the server restarts. Safe from many threads.

    Each pass of the control loop needs their names. They are read once, and again after a change: a database has one
    server, and only this class writes them.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()  # held while they are read or written
        self._names: frozenset[HostName] | None = None  # None: not read since the last change

    def load_drained(self) -> frozenset[HostName]:
        """Return their names."""
        with self._lock:
            if self._names is None:
                with self._database.single_read() as connection:
                    self._names = _select_drained_names(connection)
            return self._names

    def drain_host(self, host: HostName, moment: datetime) -> None:
        """Give the host no new jobs from now on; a drained host stays drained."""
        with self._change() as connection:
            if host not in _select_drained_names(connection):
                connection.execute(sa.insert(drained_hosts).values(name=host, at=moment))

    def resume_host(self, host: HostName) -> None:
        """Let the host take new jobs again."""
        with self._change() as connection:
            connection.execute(sa.delete(drained_hosts).where(drained_hosts.c.name == host))

    @contextmanager
    def _change(self) -> Iterator[sa.Connection]:
        """Begin a change. The names are read again also after one that failed: it may have been stored."""
        with self._lock:
            self._names = None
            with self._database.write_transaction() as connection:
                yield connection


def _select_drained_names(connection: sa.Connection) -> frozenset[HostName]:
    return frozenset(HostName(name) for name in connection.execute(sa.select(drained_hosts.c.name)).scalars())
