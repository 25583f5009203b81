"""A session lets its client in until it ends: by its age, without use, by another one too many, or by a user."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from datetime import timedelta

import pytest
import sqlalchemy as sa

from riseml.base.api_keys import SESSION_PREFIX
from riseml.store.database import Database
from riseml.store.schema import sessions
from riseml.store.sessions import LIVES, SessionKind, SessionOrigin, SessionStore
from tests.unit.store.submissions import NOW


def make_digest(key: bytes) -> Callable[[str], str]:
    return lambda text: hmac.new(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


KEY = make_digest(b"k")
ANN = SessionOrigin("ann", SessionKind.PAGE, "Firefox", "10.0.0.7")


@pytest.fixture
def held(database: Database) -> SessionStore:
    return SessionStore(database, KEY)


def test_the_secret_alone_finds_a_session_and_the_store_has_only_its_keyed_hash(
    held: SessionStore, database: Database
) -> None:
    session, secret = held.open(ANN, NOW)
    assert secret.startswith(SESSION_PREFIX)
    assert len(secret) >= len(SESSION_PREFIX) + 43, "256 random bits"
    assert held.find(secret, NOW) == SessionStore(database, KEY).find(secret, NOW) == session
    for wrong in (session.id, secret[:-1], secret.removeprefix(SESSION_PREFIX), "", SESSION_PREFIX, "\ud800"):
        assert held.find(wrong, NOW) is None, wrong
    assert SessionStore(database, make_digest(b"o")).find(secret, NOW) is None, "another key, another hash"
    with database.read_transaction() as connection:
        row = str(connection.execute(sa.select(sessions)).one())
    assert secret.removeprefix(SESSION_PREFIX) not in row


@pytest.mark.parametrize("kind", SessionKind)
def test_a_session_ends_without_use_and_at_its_expiry(held: SessionStore, kind: SessionKind) -> None:
    life = LIVES[kind]
    moment = timedelta(seconds=1)
    idle = held.open(SessionOrigin("ann", kind, "", ""), NOW)[1]
    used = held.open(SessionOrigin("ann", kind, "", ""), NOW)[1]
    steps = int(life.whole / life.idle * 2)
    for step in range(1, steps):
        assert held.find(used, NOW + step * life.idle / 2) is not None
    assert held.find(idle, NOW + life.idle) is None
    assert held.find(used, NOW + life.whole - moment) is not None
    assert held.find(used, NOW + life.whole) is None
    assert held.list_open(NOW + life.whole) == []


def test_the_last_use_is_stored_once_a_minute(held: SessionStore, database: Database) -> None:
    secret = held.open(ANN, NOW)[1]
    for seconds, stored in ((59, 0), (61, 61), (119, 61), (122, 122)):
        held.find(secret, NOW + timedelta(seconds=seconds))
        assert SessionStore(database, KEY).list_open(NOW)[0].used_at == NOW + timedelta(seconds=stored)


def test_a_session_that_is_ended_lets_no_one_in_from_then_on(held: SessionStore, database: Database) -> None:
    (first, first_secret), (_, second_secret) = held.open(ANN, NOW), held.open(ANN, NOW)
    paul, paul_secret = held.open(SessionOrigin("paul", SessionKind.DEVICE, "riseml", "10.0.0.8"), NOW)
    assert all(held.find(secret, NOW) for secret in (first_secret, second_secret, paul_secret))
    assert not held.end(paul.id, user="ann"), "not theirs"
    assert not held.end("0" * 16)
    assert held.end(first.id, user="ann")
    assert not held.end(first.id)
    for reader in (held, SessionStore(database, KEY)):
        assert [reader.find(secret, NOW) is None for secret in (first_secret, second_secret)] == [True, False]
    assert [session.user for session in held.list_open(NOW, "paul")] == ["paul"]
    assert held.end_all("ann") == 1
    assert held.find(second_secret, NOW) is None
    assert held.find(paul_secret, NOW) == paul


def test_a_user_has_at_most_fifty_sessions_of_a_kind(held: SessionStore) -> None:
    secrets = [held.open(ANN, NOW + timedelta(seconds=number))[1] for number in range(52)]
    later = NOW + timedelta(seconds=52)
    assert [held.find(secret, later) is None for secret in secrets[:3]] == [True, True, False]
    assert len(held.list_open(later, "ann")) == 50


def test_sessions_end_with_the_key_that_opened_them(held: SessionStore) -> None:
    by_key = held.open(SessionOrigin("ann", SessionKind.PAGE, "", "", key="k1"), NOW)[1]
    other = held.open(SessionOrigin("ann", SessionKind.PAGE, "", "", key="k2"), NOW)[1]
    assert all(held.find(secret, NOW) for secret in (by_key, other))
    assert held.end_of_key("k1") == 1
    assert [held.find(secret, NOW) is None for secret in (by_key, other)] == [True, False]


def test_ended_sessions_leave_the_store_with_the_next_login(held: SessionStore, database: Database) -> None:
    held.open(ANN, NOW)
    held.open(SessionOrigin("paul", SessionKind.DEVICE, "riseml", ""), NOW + timedelta(days=1))
    with database.read_transaction() as connection:
        assert list(connection.execute(sa.select(sessions.c.user)).scalars()) == ["paul"]


def test_what_the_provider_said_belongs_to_its_session(held: SessionStore) -> None:
    session, secret = held.open(ANN, NOW)
    held.find(secret, NOW)
    held.note_check(session.id, "sealed", NOW)
    checked = held.find(secret, NOW)
    assert checked is not None
    assert (checked.refresh, checked.checked_at) == ("sealed", NOW)
