"""Numbers that a store has given and lost again: no other experiment gets them, because logs and outputs have them.

A row of `facts` holds them; most stores have none.
"""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa

from riseml.store.journal import LastNumbers
from riseml.store.schema import experiments, facts

_LOST = "lost numbers"  # name of the row among the facts


def find_last_number(connection: sa.Connection, user: str) -> int:
    """Return the largest number that an experiment of a user has, or has had; 0: there is none."""
    query = sa.select(sa.func.max(experiments.c.number)).where(experiments.c.user == user)
    return max(int(connection.execute(query).scalar() or 0), _load_lost(connection).users.get(user, 0))


def choose_id(connection: sa.Connection) -> dict[str, Any]:
    """Return the id of a new experiment as a column, where SQLite would give a lost one; else no column."""
    if connection.dialect.name == "postgresql":  # its sequence was moved
        return {}
    lost = _load_lost(connection).id
    return {"id": lost + 1} if lost and lost > _find_last_id(connection) else {}


def skip_numbers(connection: sa.Connection, last: LastNumbers) -> LastNumbers | None:
    """Let new experiments get larger numbers than these; see `ExperimentStore.skip_numbers`."""
    users = experiments.c.user, sa.func.max(experiments.c.number)
    rows = connection.execute(sa.select(*users).group_by(experiments.c.user)).all()
    stored = LastNumbers(_find_last_id(connection), {str(user): int(number) for user, number in rows})
    lost = _load_lost(connection)
    highest = {user: max(stored.users.get(user, 0), lost.users.get(user, 0)) for user in last.users}
    if last.id <= max(stored.id, lost.id) and all(last.users[user] <= highest[user] for user in highest):
        return None
    names = {*last.users, *lost.users}
    skipped = {name: max(last.users.get(name, 0), lost.users.get(name, 0)) for name in names}
    connection.execute(facts.delete().where(facts.c.name == _LOST))
    newest = max(last.id, stored.id, lost.id)
    connection.execute(facts.insert().values(name=_LOST, value=json.dumps({"id": newest, "users": skipped})))
    if connection.dialect.name == "postgresql":  # an id that is written does not move the sequence of the column
        sequence = sa.func.pg_get_serial_sequence(experiments.name, "id")
        connection.execute(sa.select(sa.func.setval(sequence, max(1, newest))))
    return stored


def _find_last_id(connection: sa.Connection) -> int:
    return int(connection.execute(sa.select(sa.func.max(experiments.c.id))).scalar() or 0)


def _load_lost(connection: sa.Connection) -> LastNumbers:
    text = connection.execute(sa.select(facts.c.value).where(facts.c.name == _LOST)).scalar()
    if text is None:
        return LastNumbers(0, {})
    numbers = json.loads(text)
    return LastNumbers(int(numbers["id"]), {str(user): int(number) for user, number in numbers["users"].items()})
