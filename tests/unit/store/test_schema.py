"""Moments in the tables are UTC, whatever zone they come in, in both kinds of store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
import sqlalchemy as sa

from riseml.store.database import Database
from riseml.store.schema import drained_hosts


@pytest.mark.parametrize("hours", [-11, 0, 2])
def test_a_moment_is_the_same_moment_in_utc(database: Database, hours: int) -> None:
    moment = datetime(2026, 8, 31, 7, 23, 46, 123456, tzinfo=timezone(timedelta(hours=hours)))
    with database.write_transaction() as connection:
        connection.execute(drained_hosts.insert().values(name="gpu1", at=moment))
    with database.read_transaction() as connection:
        stored = connection.execute(sa.select(drained_hosts.c.at)).scalar_one()
        later = drained_hosts.c.at > moment - timedelta(seconds=1)
        assert connection.execute(sa.select(drained_hosts.c.name).where(later)).scalar() == "gpu1"
    assert (stored, stored.tzinfo) == (moment, UTC)
