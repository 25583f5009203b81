"""What users have marked stays marked: outputs that are kept, and hosts without new jobs."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from riseml.base.names import HostName
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.marks import DrainedHosts, KeptOutputs, is_set_kept
from riseml.store.schema import drained_hosts
from tests.unit.store.submissions import NOW, submit


def test_outputs_are_kept_until_they_are_released(database: Database, experiments: ExperimentStore) -> None:
    first, other = submit(experiments), submit(experiments)
    kept = KeptOutputs(database)
    assert kept.load_kept() == frozenset()
    kept.keep([first.id], NOW)
    kept.keep([first.id, other.id], NOW)
    assert KeptOutputs(database).load_kept() == {first.id, other.id}
    kept.release([first.id, 99])
    assert kept.load_kept() == {other.id}


def test_a_set_is_kept_when_each_of_its_outputs_is(database: Database, experiments: ExperimentStore) -> None:
    member = submit(experiments, count=2)
    assert member.set_id is not None
    kept = KeptOutputs(database)
    for outputs, whole in (([member.id], False), ([member.id + 1], True)):
        kept.keep(outputs, NOW)
        with database.read_transaction() as connection:
            assert is_set_kept(connection, member.set_id) is whole


def test_drained_hosts_are_read_again_after_a_change_only(database: Database) -> None:
    hosts = DrainedHosts(database)
    queries: list[str] = []
    sa.event.listen(database.engine, "before_cursor_execute", lambda _, cursor, query, *more: queries.append(query))
    assert [hosts.load_drained() for _ in range(3)] == [frozenset()] * 3
    assert len([query for query in queries if "drained_hosts" in query]) == 1
    hosts.drain_host(HostName("gpu1"), NOW)
    assert hosts.load_drained() == {"gpu1"}
    hosts.resume_host(HostName("gpu1"))
    assert hosts.load_drained() == frozenset()


def test_a_change_that_may_have_been_stored_is_read_again(database: Database) -> None:
    hosts = DrainedHosts(database)
    assert hosts.load_drained() == frozenset()
    with pytest.raises(OSError, match="the connection broke"), hosts._change() as connection:
        connection.execute(sa.insert(drained_hosts).values(name="gpu1", at=NOW))
        connection.commit()
        raise OSError("the connection broke")
    assert hosts.load_drained() == {"gpu1"}


def test_a_drained_host_stays_drained_since_the_first_time(database: Database) -> None:
    hosts = DrainedHosts(database)
    hosts.drain_host(HostName("gpu1"), NOW)
    hosts.drain_host(HostName("gpu1"), NOW + timedelta(days=1))
    hosts.drain_host(HostName("gpu2"), NOW)
    assert DrainedHosts(database).load_drained() == {"gpu1", "gpu2"}
    with database.read_transaction() as connection:
        moments = connection.execute(sa.select(drained_hosts.c.at).where(drained_hosts.c.name == "gpu1")).scalars()
        assert list(moments) == [NOW]
    hosts.resume_host(HostName("gpu1"))
    hosts.resume_host(HostName("gpu1"))
    assert hosts.load_drained() == {"gpu2"}
