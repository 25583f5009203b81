"""Which experiments have ended, in the order in which the server noticed it, and up to which each webhook was told."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from riseml.states import TERMINAL, State
from riseml.store.database import Database
from riseml.store.schema import events, experiments, facts

_TERMINAL = sorted(state.value for state in TERMINAL)


@dataclass(frozen=True, slots=True)
class ExperimentEnd:
    """The end of one experiment."""

    id: int  # of its event: grows
    number: int
    sub: int | None  # within its set
    user: str
    project: str
    state: State
    reason: str
    message: str
    started_at: datetime | None
    ended_at: datetime


class EndStore:
    """Reads ends from one database, and keeps where each reader is."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find_next(self, after: int) -> ExperimentEnd | None:
        """Return the first end behind the event `after`, without those of companions; None: there is none."""
        earlier = events.alias("earlier")
        is_repeated = sa.exists().where(
            earlier.c.experiment_id == events.c.experiment_id,
            earlier.c.id < events.c.id,
            earlier.c.job.is_(None),
            earlier.c.state.in_(_TERMINAL),
        )
        columns = (events.c.id, events.c.at, events.c.state, events.c.reason, events.c.message)
        query = (
            sa.select(*columns, *(experiments.c[name] for name in ("number", "sub", "user", "project", "started_at")))
            .join(experiments, experiments.c.id == events.c.experiment_id)
            .where(events.c.id > after, events.c.job.is_(None), events.c.state.in_(_TERMINAL), ~is_repeated)
            .where(experiments.c.plan["companion"]["kind"].as_string().is_(None))
            .order_by(events.c.id)
            .limit(1)
        )
        with self._database.read_transaction() as connection:
            row = connection.execute(query).mappings().first()
        if row is None:
            return None
        found = {
            name: row[name] for name in ("id", "number", "sub", "user", "project", "reason", "message", "started_at")
        }
        return ExperimentEnd(**found, state=State(row["state"]), ended_at=row["at"])

    def load_position(self, reader: str, since: datetime) -> int:
        """Return the event up to which a reader was told; a new reader begins with what has ended since a moment."""
        name = _make_name(reader)
        with self._database.write_transaction() as connection:
            found = connection.execute(sa.select(facts.c.value).where(facts.c.name == name)).scalar()
            if found is None:
                found = str(
                    connection.execute(sa.select(sa.func.max(events.c.id)).where(events.c.at < since)).scalar() or 0
                )
                connection.execute(facts.insert().values(name=name, value=found))
            return int(found)

    def save_position(self, reader: str, event: int) -> None:
        """Keep that a reader was told up to an event."""
        with self._database.write_transaction() as connection:
            connection.execute(facts.update().where(facts.c.name == _make_name(reader)).values(value=str(event)))

    def forget_others(self, readers: Iterable[str]) -> None:
        """Forget every reader but these."""
        names = [_make_name(reader) for reader in readers]
        with self._database.write_transaction() as connection:
            connection.execute(facts.delete().where(facts.c.name.like("webhook %"), facts.c.name.not_in(names)))


def _make_name(reader: str) -> str:
    """Return the name of a reader's fact: of a fixed length, without the words of the user."""
    return "webhook " + hashlib.sha256(reader.encode()).hexdigest()[:32]
