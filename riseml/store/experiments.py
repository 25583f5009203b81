"""Experiments, their jobs and their events: who writes, names the version that was read."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from riseml.errors import NotFound
from riseml.model import Environment, Experiment, Job, Owner, Plan, World
from riseml.names import JobName, experiment_name
from riseml.states import TERMINAL, Reason, State, Wanted
from riseml.store.codec import to_json
from riseml.store.database import Database
from riseml.store.rows import experiment_values, job_values, to_experiment
from riseml.store.schema import events, experiments, facts, jobs, sets

_AT_ONCE = 500  # ids in one query


@dataclass(frozen=True, slots=True)
class StateEvent:
    """One change of state of an experiment (`job` None) or of a job."""

    id: int
    job: JobName | None
    attempt: int
    at: datetime
    state: State
    reason: Reason
    message: str
    exit_code: int | None


@dataclass(frozen=True, slots=True)
class NewExperiments:
    """What is stored of a request: one plan for each point of the grid, with the first records of its jobs."""

    owner: Owner
    project: str
    config: str
    snapshot: str
    plans: tuple[tuple[Plan, tuple[Job, ...]], ...]
    environment: Environment = ()
    notes: tuple[str, ...] = ()
    key: str | None = None
    concurrency: int | None = None  # None: a single experiment, no set


@dataclass(frozen=True, slots=True)
class ExperimentDetail:
    """An experiment with what only people want to know of it."""

    experiment: Experiment
    notes: tuple[str, ...]
    config: str


class ExperimentStore:
    """The experiments of one store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: Mapping[int, Experiment] = {}  # as `load_world` found them; replaced, never changed

    def load_server_id(self) -> str:
        """The id that labels everything of this store's server; made once."""
        with self._database.write_transaction() as connection:
            found = connection.execute(sa.select(facts.c.value).where(facts.c.name == "server")).scalar()
            if found is None:
                found = uuid.uuid4().hex
                connection.execute(facts.insert().values(name="server", value=found))
            return str(found)

    def confirm_sole_server(self) -> None:
        """See to it that this server alone uses the store.

        Raises:
            StoreError: another one does, or the store does not answer.
        """
        self._database.confirm_sole_server()

    def load_world(self) -> World:
        """Every experiment that is not closed, oldest first. Only what was written since the last call is read."""
        still_open = sa.select(experiments.c.id, experiments.c.version).where(experiments.c.closed.is_(False))
        known, found = dict(self._known), dict[int, Experiment]()
        with self._database.read_transaction() as connection:
            rows = connection.execute(still_open.order_by(experiments.c.id)).all()
            changed = [
                identity for identity, version in rows if identity not in known or known[identity].version != version
            ]
            for start in range(0, len(changed), _AT_ONCE):
                some = _select(connection, experiments.c.id.in_(changed[start : start + _AT_ONCE]))
                found |= {detail.experiment.id: detail.experiment for detail in some}
        current = known | found
        loaded = {identity: current[identity] for identity, _ in rows if not current[identity].closed}
        self._known = loaded
        return World(tuple(loaded.values()))

    def add_experiments(self, submitted: NewExperiments, now: datetime) -> tuple[tuple[ExperimentDetail, ...], bool]:
        """Store a request; the experiments, and False when the same key had been stored before."""
        with self._database.write_transaction() as connection:
            if submitted.key is not None:
                known = _select(
                    connection,
                    sa.and_(experiments.c.key == submitted.key, experiments.c.user == submitted.owner.user),
                )
                if known:
                    return known, False
            ids = list(_insert(connection, submitted, now))
            return _select(connection, experiments.c.id.in_(ids)), True

    def save_decision(self, before: Experiment, after: Experiment, now: datetime) -> bool:
        """Write a decision down, with an event for every change of state; False when `before` is out of date.

        The whole is one transaction: a state that a reader sees has its event.
        """
        with self._database.write_transaction() as connection:
            changed = connection.execute(
                experiments.update()
                .where(experiments.c.id == before.id, experiments.c.version == before.version)
                .values(**experiment_values(after), version=before.version + 1)
            )
            if changed.rowcount == 0:
                return False
            for position, (old, new) in enumerate(zip(before.jobs, after.jobs, strict=True)):
                if old != new:
                    row = job_values(after.id, position, new)
                    connection.execute(
                        jobs.update().where(jobs.c.experiment_id == after.id, jobs.c.name == new.name).values(**row)
                    )
            rows = list(_state_changes(before, after, now))
            if rows:
                connection.execute(events.insert(), rows)
            return True

    def request_kill(self, ids: Sequence[int]) -> None:
        """Write down that these experiments are to be killed; those that have ended stay as they are."""
        with self._database.write_transaction() as connection:
            connection.execute(
                experiments.update()
                .where(experiments.c.id.in_(ids), experiments.c.ended_at.is_(None))
                .values(wanted=Wanted.KILL.value, version=experiments.c.version + 1)
            )

    def find_by_number(self, user: str, number: int, sub: int | None = None) -> tuple[ExperimentDetail, ...]:
        """One experiment, or all members of the set of that number.

        Raises:
            NotFound: there is none.
        """
        condition = sa.and_(experiments.c.user == user, experiments.c.number == number)
        if sub is not None:
            condition = sa.and_(condition, experiments.c.sub == sub)
        with self._database.read_transaction() as connection:
            found = _select(connection, condition)
        if not found:
            raise NotFound(
                f"there is no experiment {experiment_name(number, sub)}", "`riseml status -a` lists all of yours"
            )
        return found

    def get_experiment(self, identity: int) -> ExperimentDetail:
        """One experiment by its key in the store.

        Raises:
            NotFound: there is none.
        """
        with self._database.read_transaction() as connection:
            found = _select(connection, experiments.c.id == identity)
        if not found:
            raise NotFound(f"there is no experiment with the key {identity}")
        return found[0]

    def list_experiments(
        self, user: str, *, ended: bool, project: str | None, limit: int | None
    ) -> tuple[ExperimentDetail, ...]:
        """A user's experiments, oldest first; `limit` keeps the newest numbers, a set counting as one."""
        condition = experiments.c.user == user
        if not ended:
            # what has not ended is not closed either, and of those there are few, however many have ended
            condition = sa.and_(experiments.c.closed.is_(False), condition, experiments.c.ended_at.is_(None))
        if project is not None:
            condition = sa.and_(condition, experiments.c.project == project)
        with self._database.read_transaction() as connection:
            if limit is not None:
                numbers = (
                    sa.select(experiments.c.number)
                    .where(condition)
                    .distinct()
                    .order_by(experiments.c.number.desc())
                    .limit(limit)
                )
                condition = sa.and_(condition, experiments.c.number.in_(numbers.scalar_subquery()))
            return _select(connection, condition)

    def read_events(self, experiment: int, after: int) -> tuple[StateEvent, ...]:
        """The experiment's events behind the one with the id `after`."""
        with self._database.read_transaction() as connection:
            rows = connection.execute(
                sa.select(events).where(events.c.experiment_id == experiment, events.c.id > after).order_by(events.c.id)
            ).mappings()
            return tuple(_event(row) for row in rows)

    def count_open(self) -> int:
        """How many experiments have not been closed."""
        with self._database.read_transaction() as connection:
            count = sa.select(sa.func.count()).select_from(experiments).where(experiments.c.closed.is_(False))
            return int(connection.execute(count).scalar_one())


def _select(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> tuple[ExperimentDetail, ...]:
    query = (
        sa.select(experiments, sets.c.concurrency)
        .outerjoin(sets, experiments.c.set_id == sets.c.id)
        .where(condition)
        .order_by(experiments.c.id)
    )
    rows = connection.execute(query).mappings().all()
    wanted = sa.select(experiments.c.id).where(condition).scalar_subquery()
    of: dict[int, list[sa.RowMapping]] = {}
    for job in connection.execute(
        sa.select(jobs).where(jobs.c.experiment_id.in_(wanted)).order_by(jobs.c.position)
    ).mappings():
        of.setdefault(job["experiment_id"], []).append(job)
    return tuple(
        ExperimentDetail(to_experiment(row, of.get(row["id"], [])), tuple(row["notes"]), row["config"]) for row in rows
    )


def _insert(connection: sa.Connection, submitted: NewExperiments, now: datetime) -> Iterator[int]:
    user = submitted.owner.user
    number = 1 + int(
        connection.execute(sa.select(sa.func.max(experiments.c.number)).where(experiments.c.user == user)).scalar() or 0
    )
    set_id = None
    if submitted.concurrency is not None:
        values = {"user": user, "number": number, "project": submitted.project, "created_at": now}
        inserted = connection.execute(sets.insert().values(**values, concurrency=submitted.concurrency))
        set_id = _new_id(inserted)
    for index, (plan, first) in enumerate(submitted.plans, start=1):
        row = _first_values(submitted, plan, number, now)
        row |= {"set_id": set_id, "sub": None if set_id is None else index}
        identity = _new_id(connection.execute(experiments.insert().values(**row)))
        connection.execute(jobs.insert(), [job_values(identity, at, job) for at, job in enumerate(first)])
        connection.execute(events.insert(), list(_first_events(identity, first, now)))
        yield identity


def _new_id(result: sa.CursorResult[Any]) -> int:
    key = result.inserted_primary_key
    if key is None:
        raise LookupError("the store did not tell the key of a new row")
    return int(key[0])


def _first_values(submitted: NewExperiments, plan: Plan, number: int, now: datetime) -> dict[str, Any]:
    owner = submitted.owner
    return {
        "user": owner.user,
        "uid": owner.uid,
        "gid": owner.gid,
        "number": number,
        "project": submitted.project,
        "config": submitted.config,
        "plan": to_json(plan),
        "snapshot": submitted.snapshot,
        "environment": to_json(submitted.environment),
        "notes": list(submitted.notes),
        "key": submitted.key,
        "wanted": Wanted.RUN.value,
        "state": State.CREATED.value,
        "reason": Reason.SUBMITTED.value,
        "message": "",
        "closed": False,
        "version": 1,
        "created_at": now,
    }


def _first_events(experiment: int, first: Iterable[Job], now: datetime) -> Iterator[dict[str, Any]]:
    created = {"state": State.CREATED.value, "reason": Reason.SUBMITTED.value, "message": "", "exit_code": None}
    for name in (None, *(job.name for job in first)):
        yield {"experiment_id": experiment, "job": name, "attempt": 1, "at": now, **created}


def _state_changes(before: Experiment, after: Experiment, now: datetime) -> Iterator[dict[str, Any]]:
    """Jobs first, so that an experiment's last word is its own.

    A job's start and end are dated by its host, as its lines are, so that they come in their order among them.
    """
    last = now
    for old, new in zip(before.jobs, after.jobs, strict=True):
        if _face(old) != _face(new):
            at = new.ended_at if new.state in TERMINAL else new.started_at if new.state is State.RUNNING else now
            last = max(last, at or now)
            values = _event_values(after.id, new, at or now)
            yield values | {"job": new.name, "attempt": new.attempt, "exit_code": new.exit_code}
    if _face(before) != _face(after):
        attempt = max((job.attempt for job in after.jobs), default=1)
        yield _event_values(after.id, after, last) | {"job": None, "attempt": attempt, "exit_code": None}


def _face(record: Experiment | Job) -> tuple[State, Reason, str]:
    return record.state, record.reason, record.message


def _event_values(experiment: int, record: Experiment | Job, now: datetime) -> dict[str, Any]:
    state, reason, message = _face(record)
    return {"experiment_id": experiment, "at": now, "state": state.value, "reason": reason.value, "message": message}


def _event(row: sa.RowMapping) -> StateEvent:
    return StateEvent(
        id=row["id"],
        job=None if row["job"] is None else JobName(row["job"]),
        attempt=row["attempt"],
        at=row["at"],
        state=State(row["state"]),
        reason=Reason(row["reason"]),
        message=row["message"],
        exit_code=row["exit_code"],
    )
