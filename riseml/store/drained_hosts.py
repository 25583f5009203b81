"""What people said of hosts: which ones get nothing new."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from riseml.names import HostName
from riseml.store.database import Database
from riseml.store.schema import drained_hosts


class DrainedHosts:
    """The hosts that are to run empty, in the store, so that a restarted server leaves them alone, too."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load_drained(self) -> frozenset[HostName]:
        """Their names."""
        with self._database.read_transaction() as connection:
            return _names(connection)

    def drain_host(self, host: HostName, moment: datetime) -> None:
        """Give the host nothing new from now on; one that is drained already stays so."""
        with self._database.write_transaction() as connection:
            if host not in _names(connection):
                connection.execute(sa.insert(drained_hosts).values(name=host, at=moment))

    def resume_host(self, host: HostName) -> None:
        """Let the host take new jobs again."""
        with self._database.write_transaction() as connection:
            connection.execute(sa.delete(drained_hosts).where(drained_hosts.c.name == host))


def _names(connection: sa.Connection) -> frozenset[HostName]:
    return frozenset(HostName(name) for name in connection.execute(sa.select(drained_hosts.c.name)).scalars())
