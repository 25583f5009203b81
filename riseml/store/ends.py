"""The ends of experiments in the order in which the server noticed them, and how far each webhook has received them."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Callable, Iterable
from datetime import datetime

import sqlalchemy as sa

from riseml.base.records import dataclass
from riseml.base.states import TERMINAL, State
from riseml.spec.config.types import NotifySection
from riseml.store.database import Database
from riseml.store.noted_table import NOTIFY, read_notify
from riseml.store.schema import events, experiments, facts, sets

_TERMINAL = sorted(state.value for state in TERMINAL)
_NOTIFY = NOTIFY.label("notify")


@dataclass(frozen=True, slots=True)
class ExperimentEnd:
    """The end of one experiment."""

    id: int  # ID of its event; it grows
    experiment: int  # key in the store
    number: int
    sub: int | None  # within its set
    set_id: int | None  # key of its set in the store; None: it is not in a set
    user: str
    project: str
    state: State
    reason: str
    message: str
    started_at: datetime | None
    ended_at: datetime  # when its last job ended
    noticed_at: datetime  # when the server noticed it, which may be later
    waited: float = 0.0  # seconds between its attempts
    notify: NotifySection | None = None  # the `notify` section of its riseml.yml
    team_project: str | None = None  # whose members see it; None: it belongs to its user alone


class SetProgress(enum.Enum):
    """What the end of an experiment means for its set."""

    GOES_ON = enum.auto()  # another one has not ended, or has ended later
    WAITS = enum.auto()  # all have ended, and the search has not decided whether to make another one
    ENDED = enum.auto()  # it is the end of the set


class EndStore:
    """Reads ends from one database, and keeps where each reader is."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find_next(self, after: int) -> ExperimentEnd | None:
        """Return the first end after the event `after`, without those of companions; None: there is none."""
        columns = (events.c.id, events.c.at, events.c.state, events.c.reason, events.c.message)
        own = ("number", "sub", "set_id", "user", "project", "team_project", "started_at", "ended_at", "waited")
        query = (
            sa.select(*columns, *(experiments.c[name] for name in own), events.c.experiment_id, _NOTIFY)
            .join(experiments, experiments.c.id == events.c.experiment_id)
            .where(events.c.id > after, *_is_end())
            .where(experiments.c.plan["companion"]["kind"].as_string().is_(None))
            .order_by(events.c.id)
            .limit(1)
        )
        with self._database.read_transaction() as connection:
            row = connection.execute(query).mappings().first()
        if row is None:
            return None
        values = {name: row[name] for name in ("id", *own, "reason", "message")}
        notify = read_notify(row["notify"])
        state = State(row["state"])
        experiment = row["experiment_id"]
        values["ended_at"] = row["ended_at"] or row["at"]
        return ExperimentEnd(**values, experiment=experiment, state=state, noticed_at=row["at"], notify=notify)

    def find_set_progress(self, end: ExperimentEnd) -> SetProgress:
        """Return what the end of a member means for its set. Exactly one member's end is the end of the set."""
        in_set = experiments.c.set_id == end.set_id
        is_open = sa.select(experiments.c.id).where(in_set, experiments.c.state.not_in(_TERMINAL)).limit(1)
        later = (
            sa.select(events.c.id)
            .join(experiments, experiments.c.id == events.c.experiment_id)
            .where(in_set, events.c.id > end.id, *_is_end())
            .limit(1)
        )
        of_set = sa.select(sets.c.search, sets.c.search_end).where(sets.c.id == end.set_id)
        with self._database.read_transaction() as connection:
            if any(connection.execute(query).first() is not None for query in (is_open, later)):
                return SetProgress.GOES_ON
            row = connection.execute(of_set).first()
        return SetProgress.WAITS if row is not None and row[0] is not None and row[1] is None else SetProgress.ENDED

    def load_position(
        self, reader: str, since: datetime, find_last_before: Callable[[datetime], int] | None = None
    ) -> int:
        """Return the event up to which a reader has been notified. A new reader begins with the ends since a moment.

        Args:
            reader: its name.
            since: the moment.
            find_last_before: returns where a new reader begins that reads other records than ends.
        """
        name = _make_name(reader)
        other = None if find_last_before is None else find_last_before(since)
        with self._database.write_transaction() as connection:
            position = connection.execute(sa.select(facts.c.value).where(facts.c.name == name)).scalar()
            if position is None:
                query = sa.select(sa.func.max(events.c.id)).where(events.c.at < since)
                position = str((connection.execute(query).scalar() if other is None else other) or 0)
                connection.execute(facts.insert().values(name=name, value=position))
            return int(position)

    def save_position(self, reader: str, event: int) -> None:
        """Store the event up to which a reader has been notified."""
        with self._database.write_transaction() as connection:
            connection.execute(facts.update().where(facts.c.name == _make_name(reader)).values(value=str(event)))

    def load_late(self, reader: str) -> tuple[int, ...]:
        """Return the ends that a reader has passed without knowing whether they are the ends of their sets."""
        query = sa.select(facts.c.value).where(facts.c.name == _make_name(reader))
        with self._database.read_transaction() as connection:
            text = connection.execute(query).scalar()
        return tuple(int(event) for event in (text or "").split())

    def save_late(self, reader: str, late: Iterable[int]) -> None:
        """Store the ends that `load_late` returns."""
        name = _make_name(reader)
        with self._database.write_transaction() as connection:
            connection.execute(facts.delete().where(facts.c.name == name))
            connection.execute(facts.insert().values(name=name, value=" ".join(map(str, sorted(set(late))))))

    def forget_others(self, readers: Iterable[str]) -> None:
        """Forget every reader but these."""
        names = [_make_name(reader) for reader in readers]
        with self._database.write_transaction() as connection:
            connection.execute(facts.delete().where(facts.c.name.like("webhook %"), facts.c.name.not_in(names)))


def _make_name(reader: str) -> str:
    """Return the name of a reader's fact: a hash of fixed length, because names of webhooks are free text."""
    return "webhook " + hashlib.sha256(reader.encode()).hexdigest()[:32]


def _is_end() -> tuple[sa.ColumnElement[bool], ...]:
    """Return the conditions of an event that is the end of an experiment: the first one, when it was written again."""
    earlier = events.alias("earlier")
    is_repeated = sa.exists().where(
        earlier.c.experiment_id == events.c.experiment_id,
        earlier.c.id < events.c.id,
        earlier.c.job.is_(None),
        earlier.c.state.in_(_TERMINAL),
    )
    return events.c.job.is_(None), events.c.state.in_(_TERMINAL), ~is_repeated
