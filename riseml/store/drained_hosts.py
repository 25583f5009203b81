"""The hosts that get no new jobs, because a user has drained them (`riseml pool drain`)."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from riseml.base.names import HostName
from riseml.store.database import Database
from riseml.store.schema import drained_hosts


class DrainedHosts:
    """The drained hosts in one database; they stay drained when the server restarts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load_drained(self) -> frozenset[HostName]:
        """Return their names."""
        with self._database.read_transaction() as connection:
            return _select_names(connection)

    def drain_host(self, host: HostName, moment: datetime) -> None:
        """Give the host no new jobs from now on; a drained host stays drained."""
        with self._database.write_transaction() as connection:
            if host not in _select_names(connection):
                connection.execute(sa.insert(drained_hosts).values(name=host, at=moment))

    def resume_host(self, host: HostName) -> None:
        """Let the host take new jobs again."""
        with self._database.write_transaction() as connection:
            connection.execute(sa.delete(drained_hosts).where(drained_hosts.c.name == host))


def _select_names(connection: sa.Connection) -> frozenset[HostName]:
    return frozenset(HostName(name) for name in connection.execute(sa.select(drained_hosts.c.name)).scalars())
