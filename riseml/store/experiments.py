"""Experiments, their jobs and their events in SQL.

Writes of a decision use optimistic locking: the caller passes the record that it read, and the store refuses the write
when the stored version differs.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from riseml.base.errors import NotFound
from riseml.base.names import JobName, experiment_name
from riseml.base.records import dataclass
from riseml.base.states import TERMINAL, Reason, State, Wanted
from riseml.model import Caller, Environment, Experiment, Job, World
from riseml.spec.config.types import KeptBars
from riseml.store.annotations import NO_FILTER, AnnotationFilter, list_conditions
from riseml.store.changes import ChangeLog
from riseml.store.codec import from_json, parse_json, to_json
from riseml.store.database import Database
from riseml.store.home_record import load_server_id
from riseml.store.insertion import Admit, NewExperiments, Seal, admit_all, insert_experiments, keep_values
from riseml.store.journal import AcceptedRecord, ExperimentJournal, LastNumbers
from riseml.store.logs.thinned_bars import BarRule
from riseml.store.lost_numbers import skip_numbers
from riseml.store.placements import write_places
from riseml.store.rows import (
    Texts,
    experiment_values,
    job_values,
    select_texts,
    to_experiment,
)
from riseml.store.schema import events, experiments, facts, jobs, sets
from riseml.store.visibility import select_visible

_IDS_PER_QUERY = 500
_ENDED = sorted(state.value for state in TERMINAL)


@dataclass(frozen=True, slots=True)
class StateEvent:
    """One change of state of an experiment or of a job."""

    id: int  # grows with time over all experiments of the store
    job: JobName | None  # None: the experiment itself
    attempt: int  # at the job, from 1
    at: datetime  # when it happened, by the clock of the job's host
    state: State  # the new one
    reason: Reason
    message: str  # details for people; may be empty
    exit_code: int | None  # exit code of a job that ended


@dataclass(frozen=True, slots=True)
class ExperimentDetail:
    """An experiment with the texts that only people read."""

    experiment: Experiment
    notes: tuple[str, ...]  # warnings about its riseml.yml
    config: str  # text of its riseml.yml


class ExperimentStore:
    """The experiments in one database. Safe from many threads.

    Args:
        database: has them.
        journal: gets what is accepted and what ends; None: nothing does.
    """

    def __init__(self, database: Database, journal: ExperimentJournal | None = None) -> None:
        self._journal = journal
        self.changes = ChangeLog(database)  # in which order they changed
        self._database = database
        self._erasings = 0  # how often values were erased, of which bytes may be left in a file
        self._finished_erasings = 0  # the value of the counter up to which no bytes are left
        # open experiments as `load_world` read them or as `save_decision` wrote them, by id; a record counts only while
        # the store has its version
        self._cache: dict[int, Experiment] = {}

    def load_server_id(self) -> str:
        """Return the id that labels everything of this store's server; the first call creates it."""
        with self._database.write_transaction() as connection:
            server_id = load_server_id(connection)
            if server_id is None:
                server_id = uuid.uuid4().hex
                connection.execute(facts.insert().values(name="server", value=server_id))
            return server_id

    def confirm_sole_server(self) -> None:
        """Check that no other server uses the store.

        Raises:
            StoreError: another server uses it, or it does not answer.
        """
        self._database.confirm_sole_server()

    def load_world(self) -> World:
        """Return all experiments that are not closed, oldest first. Read only those again that have changed since the
        last call."""
        cached = dict(self._cache)
        fresh = dict[int, Experiment]()
        with self._database.single_read() as connection:
            rows = connection.execute(_query_open()).all()
        if _list_changed(rows, cached):  # again, in the state of the store in which they are read
            with self._database.read_transaction() as connection:
                rows = connection.execute(_query_open()).all()
                changed = _list_changed(rows, cached)
                for start in range(0, len(changed), _IDS_PER_QUERY):
                    some = select_details(connection, experiments.c.id.in_(changed[start : start + _IDS_PER_QUERY]))
                    fresh |= {detail.experiment.id: detail.experiment for detail in some}
        current = cached | fresh
        loaded = {identity: current[identity] for identity, _, _ in rows if not current[identity].closed}
        self._cache = loaded
        return World(tuple(loaded.values()))

    def find_submitted(self, user: str, key: str) -> tuple[ExperimentDetail, ...]:
        """Return what a user has submitted under a key; nothing when there is none."""
        with self._database.read_transaction() as connection:
            return _select_submitted(connection, user, key)

    def add_experiments(
        self, submitted: NewExperiments, now: datetime, seal: Seal = keep_values, admit: Admit = admit_all
    ) -> tuple[tuple[ExperimentDetail, ...], bool]:
        """Store the experiments of a submission, with the variables that `seal` returns, if `admit` lets it in.

        Raises:
            Refused: `admit` refuses it: nothing is stored.

        Returns:
            The experiments, and False when they were stored before under the same key.
        """
        with self._database.write_transaction() as connection:
            if submitted.key is not None:
                stored = _select_submitted(connection, submitted.owner.user, submitted.key)
                if stored:
                    return stored, False
            admit(connection, submitted)
            ids = list(insert_experiments(connection, submitted, now, seal))
            added = select_details(connection, experiments.c.id.in_(ids))
        if self._journal is not None:
            accepted = [detail.experiment for detail in added]
            self._journal.note_accepted(
                AcceptedRecord(experiment.id, experiment.owner.user, experiment.number, now) for experiment in accepted
            )
        return added, True

    def save_decision(self, before: Experiment, after: Experiment, now: datetime) -> bool:
        """Write a decision, and an event for each change of state, in one transaction.

        Returns:
            False when the stored experiment is newer than `before`; then nothing is written.
        """
        with self._database.write_transaction(vital=True) as connection:
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
            write_places(connection, before, after, now)
        self._note_saved(before, after)
        if before.environment and not after.needs_variables:
            self.note_erasing()
        if self._journal is not None and after.state in TERMINAL and before.state not in TERMINAL:
            self._journal.note_end(after)
        return True

    def _note_saved(self, before: Experiment, after: Experiment) -> None:
        """Remember an experiment as the store has it after `save_decision`, so that the next pass need not read it."""
        environment = after.environment if after.needs_variables else ()
        stored = replace(after, environment=environment, version=before.version + 1)
        self._cache[stored.id] = stored

    def skip_numbers(self, last: LastNumbers) -> LastNumbers | None:
        """Let new experiments get larger numbers than these, which a store that has lost experiments may have given.

        Returns:
            The largest numbers that the store has; None when it has all of them.
        """
        with self._database.write_transaction() as connection:
            return skip_numbers(connection, last)

    def reseal_variables(self, reseal: Seal) -> None:
        """Replace the variables of every experiment, and of every search that goes on, in one transaction."""
        with self._database.write_transaction() as connection:
            for table in (experiments, sets):
                columns = (table.c.id, table.c.user, table.c.number, table.c.environment)
                rows = connection.execute(sa.select(*columns).where(table.c.environment.isnot(None))).all()
                for identity, user, number, stored in rows:
                    if stored:
                        sealed = reseal(user, number, from_json(stored, Environment))
                        values: dict[str, Any] = {"environment": to_json(sealed)}
                        if table is experiments:
                            values["version"] = experiments.c.version + 1
                        connection.execute(table.update().where(table.c.id == identity).values(**values))
        self.note_erasing()

    def note_erasing(self) -> None:
        """Record that values were erased: `finish_erasing` removes their bytes."""
        self._erasings += 1

    def finish_erasing(self) -> bool:
        """Remove the bytes of erased values from the database's files. Return False when the caller must call it again.

        Raises:
            StoreError: the store cannot be written now; call it again.
        """
        # read before writing the file: values that are erased meanwhile are left for the next call
        erasings = self._erasings
        if self._finished_erasings < erasings and self._database.empty_write_ahead_log():
            self._finished_erasings = erasings
        return self._finished_erasings == erasings

    def request_kill(self, ids: Sequence[int]) -> None:
        """Store that the user has killed these experiments (`wanted`); experiments that have ended stay unchanged."""
        with self._database.write_transaction(vital=True) as connection:
            connection.execute(
                experiments.update()
                .where(experiments.c.id.in_(ids), experiments.c.ended_at.is_(None))
                .values(wanted=Wanted.KILL.value, version=experiments.c.version + 1)
            )

    def find_by_number(
        self, user: str, number: int, sub: int | None = None, caller: Caller | None = None
    ) -> tuple[ExperimentDetail, ...]:
        """Return one experiment of a user, or all members of the set with this number.

        Args:
            user: whose it is.
            number: of the experiment or the set.
            sub: of a member of the set.
            caller: who must see it; None: nobody does.

        Raises:
            NotFound: there is none, or the caller does not see it.
        """
        condition = sa.and_(experiments.c.user == user, experiments.c.number == number)
        if caller is not None:
            condition = sa.and_(condition, select_visible(caller))
        if sub is not None:
            condition = sa.and_(condition, experiments.c.sub == sub)
        with self._database.read_transaction() as connection:
            details = select_details(connection, condition)
        if not details:
            raise NotFound(
                f"there is no experiment {experiment_name(number, sub)}", "`riseml status -a` lists all of yours"
            )
        return details

    def get_experiment(self, identity: int) -> ExperimentDetail:
        """Return one experiment by its key in the store.

        Raises:
            NotFound: there is none.
        """
        with self._database.read_transaction() as connection:
            details = _read_details(connection, _query_by_id(), {"identity": identity})
        if not details:
            raise NotFound(f"there is no experiment with the key {identity}")
        return details[0]

    def get_record(self, identity: int) -> Experiment:
        """Return the record of one experiment by its key in the store. Read it only if it has changed since the last
        pass of the control loop.

        Raises:
            NotFound: there is none.
        """
        with self._database.single_read() as connection:
            version = connection.execute(_query_version(), {"identity": identity}).scalar()
        cached = self._cache.get(identity)
        return cached if cached is not None and cached.version == version else self.get_experiment(identity).experiment

    def read_config(self, identity: int) -> str:
        """Return the text of the riseml.yml of an experiment.

        Raises:
            NotFound: there is no such experiment.
        """
        with self._database.single_read() as connection:
            config = connection.execute(_query_config(), {"identity": identity}).scalar()
        if config is None:
            raise NotFound(f"there is no experiment with the key {identity}")
        return str(config)

    def sees_snapshot(self, caller: Caller, digest: str) -> bool:
        """Return True when a caller sees an experiment that has run with these files of a project."""
        some = sa.select(experiments.c.id).where(experiments.c.snapshot == digest, select_visible(caller)).limit(1)
        with self._database.read_transaction() as connection:
            return connection.execute(some).first() is not None

    def find_patterns(self, identity: int) -> dict[str, str]:
        """Return the patterns of `train.metrics` of an experiment, by name; none when there is no such experiment."""
        query = sa.select(experiments.c.plan["policy", "metrics"]).where(experiments.c.id == identity)
        with self._database.read_transaction() as connection:
            patterns = connection.execute(query).scalar()
        return dict(patterns or ())

    def find_bar_rule(self, identity: int) -> BarRule:
        """Return which states of progress bars the log of an experiment keeps."""
        plan = experiments.c.plan
        columns = (plan["policy", "log", "bars"].as_string(), plan["policy", "metrics"])
        query = sa.select(*columns).where(experiments.c.id == identity)
        with self._database.read_transaction() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            return BarRule.LAST
        bars, patterns = row
        return BarRule.ALL if bars == KeptBars.ALL.value else BarRule.LAST_IN_LINE if patterns else BarRule.LAST

    def list_experiments(  # noqa: PLR0913  # the conditions of a list, each of which has a name
        self,
        user: str | None,
        *,
        ended: bool,
        project: str | None,
        limit: int | None,
        before: int | None = None,
        companions: bool = True,
        annotation_filter: AnnotationFilter = NO_FILTER,
        caller: Caller | None = None,
        team_project: str | None = None,
        older_than: tuple[str, int] | None = None,
    ) -> tuple[ExperimentDetail, ...]:
        """Return experiments of a user, or of all users, oldest first.

        Args:
            user: whose they are; None: of all users.
            ended: whether to include experiments that have ended. Without them, a set still has all members while its
            search may make further ones.
            project: only those of this project.
            limit: only the newest numbers; a set has one number, and each user has numbers of their own.
            before: only numbers below this one: with `limit`, the next page of older ones.
            companions: whether to include companions.
            annotation_filter: only those about which this was said.
            caller: only those that they see; None: all.
            team_project: only those that belong to this team project.
            older_than: with a limit, only those that came before the experiment or set of this user with this number:
                the next page of a list of all users.
        """
        conditions = [sa.true() if user is None else experiments.c.user == user]
        if caller is not None:
            conditions.append(select_visible(caller))
        if project is not None:
            conditions.append(experiments.c.project == project)
        if team_project is not None:
            conditions.append(experiments.c.team_project == team_project)
        if before is not None:
            conditions.append(experiments.c.number < before)
        if not companions:
            conditions.append(experiments.c.plan["companion"]["kind"].as_string().is_(None))
        with self._database.read_transaction() as connection:
            if not ended:
                conditions.append(find_open(connection, user))
            if annotation_filter != NO_FILTER:
                conditions += list_conditions(user, annotation_filter, connection.dialect, find_open(connection, user))
            condition = sa.and_(*conditions)
            if limit is not None and user is None:
                condition = _restrict_to_newest_of_all(connection, condition, limit, older_than)
            elif limit is not None:
                condition = _restrict_to_newest(condition, limit)
            return select_details(connection, condition)

    def read_events(self, experiment: int, after: int) -> tuple[StateEvent, ...]:
        """Return the experiment's events after the one with the id `after`."""
        with self._database.single_read() as connection:
            rows = connection.execute(_query_events(), {"experiment": experiment, "after": after}).mappings()
            return tuple(_to_event(row) for row in rows)

    def list_ids(self) -> tuple[frozenset[int], frozenset[int]]:
        """Return the ids of the experiments that are not closed, and of those that are."""
        with self._database.read_transaction() as connection:
            rows = connection.execute(sa.select(experiments.c.id, experiments.c.closed)).all()
        return (
            frozenset(identity for identity, closed in rows if not closed),
            frozenset(identity for identity, closed in rows if closed),
        )

    def count_open(self) -> int:
        """Return how many experiments are not closed."""
        with self._database.read_transaction() as connection:
            count = sa.select(sa.func.count()).select_from(experiments).where(experiments.c.closed.is_(False))
            return int(connection.execute(count).scalar_one())

    def count_unfinished(self) -> tuple[int, int]:
        """Return how many experiments have not ended, and how many have ended but are not closed."""
        ended = sa.case((experiments.c.state.in_(_ENDED), 1), else_=0)
        count = sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(ended), 0))
        count = count.select_from(experiments).where(experiments.c.closed.is_(False))
        with self._database.read_transaction() as connection:
            unclosed, closing = connection.execute(count).one()
        return int(unclosed) - int(closing), int(closing)


def _list_changed(rows: Sequence[sa.Row[int, int, str | None]], cached: Mapping[int, Experiment]) -> list[int]:
    """Return the ids of the experiments that are not as the cached records: in their versions, or in their team
    projects, whose removal leaves the version as it is."""
    return [
        identity
        for identity, version, team_project in rows
        if identity not in cached
        or cached[identity].version != version
        or cached[identity].team_project != team_project
    ]


def select_details(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> tuple[ExperimentDetail, ...]:
    """Return the experiments that meet a condition, oldest first."""
    return _read_details(connection, _query_details(condition), {})


_DetailQueries = tuple[sa.Select[Any], sa.Select[int, str]]
"""The queries for experiments and for the records of their jobs."""


def _query_details(condition: sa.ColumnElement[bool]) -> _DetailQueries:
    query = (
        sa.select(*select_texts(experiments), sets.c.concurrency, sets.c.paused)
        .outerjoin(sets, experiments.c.set_id == sets.c.id)
        .where(condition)
        .order_by(experiments.c.id)
    )
    ids = sa.select(experiments.c.id).where(condition).scalar_subquery()
    columns = sa.select(jobs.c.experiment_id, sa.cast(jobs.c.record, sa.Text))
    return query, columns.where(jobs.c.experiment_id.in_(ids)).order_by(jobs.c.position)


# A loop of short jobs makes most of its queries with these. They are made once: making a query takes longer than
# SQLite takes for its answer.


@functools.cache
def _query_by_id() -> _DetailQueries:
    return _query_details(experiments.c.id == sa.bindparam("identity"))


@functools.cache
def _query_version() -> sa.Select[int]:
    return sa.select(experiments.c.version).where(experiments.c.id == sa.bindparam("identity"))


@functools.cache
def _query_config() -> sa.Select[str]:
    return sa.select(experiments.c.config).where(experiments.c.id == sa.bindparam("identity"))


@functools.cache
def _query_events() -> sa.Select[Any]:
    return (
        sa.select(events)
        .where(events.c.experiment_id == sa.bindparam("experiment"), events.c.id > sa.bindparam("after"))
        .order_by(events.c.id)
    )


@functools.cache
def _query_open() -> sa.Select[int, int, str | None]:
    still_open = experiments.c.closed.is_(False)
    columns = (experiments.c.id, experiments.c.version, experiments.c.team_project)
    return sa.select(*columns).where(still_open).order_by(experiments.c.id)


def _read_details(
    connection: sa.Connection, queries: _DetailQueries, values: Mapping[str, int]
) -> tuple[ExperimentDetail, ...]:
    of_experiments, of_jobs = queries
    rows = connection.execute(of_experiments, values).mappings().all()
    jobs_of: dict[int, list[str]] = {}
    for experiment, record in connection.execute(of_jobs, values).all():
        jobs_of.setdefault(experiment, []).append(record)
    return tuple(
        ExperimentDetail(to_experiment(row, jobs_of.get(row["id"], [])), parse_json(row["notes"], Texts), row["config"])
        for row in rows
    )


def _select_submitted(connection: sa.Connection, user: str, key: str) -> tuple[ExperimentDetail, ...]:
    return select_details(connection, sa.and_(experiments.c.key == key, experiments.c.user == user))


def find_open(connection: sa.Connection, user: str | None) -> sa.ColumnElement[bool]:
    """Return the condition of a user's experiments that go on, and of the members of sets whose search goes on. None:
    of all users."""
    # An open experiment is not closed either; that condition has an index, and few experiments meet it.
    still_open = sa.and_(experiments.c.closed.is_(False), experiments.c.ended_at.is_(None))
    going = sa.and_(sets.c.search.isnot(None), sets.c.search_end.is_(None))
    if user is None:
        return sa.or_(still_open, experiments.c.set_id.in_(sa.select(sets.c.id).where(going).scalar_subquery()))
    going = sa.and_(sets.c.user == user, going)
    numbers = connection.execute(sa.select(sets.c.number).where(going)).scalars().all()
    if not numbers:
        return still_open
    # A union, because each part has an index of its own.
    own_ids = sa.select(experiments.c.id).where(experiments.c.user == user)
    both = own_ids.where(still_open).union(own_ids.where(experiments.c.number.in_(numbers)))
    return experiments.c.id.in_(both.scalar_subquery())


def _restrict_to_newest(condition: sa.ColumnElement[bool], limit: int) -> sa.ColumnElement[bool]:
    """Return the condition with only the newest numbers that meet it."""
    number = experiments.c.number
    newest = sa.select(number).where(condition).distinct().order_by(number.desc()).limit(limit)
    return sa.and_(condition, number.in_(newest.scalar_subquery()))


def _restrict_to_newest_of_all(
    connection: sa.Connection, condition: sa.ColumnElement[bool], limit: int, older_than: tuple[str, int] | None
) -> sa.ColumnElement[bool]:
    """Return the condition with only the newest entries of all users that meet it, by their first keys."""
    entry = (experiments.c.user, experiments.c.number)
    first = sa.func.min(experiments.c.id)
    newest = sa.select(*entry).where(condition).group_by(*entry).order_by(first.desc()).limit(limit)
    if older_than is not None:
        is_it = sa.and_(*(column == value for column, value in zip(entry, older_than, strict=True)))
        key = connection.execute(sa.select(first).where(condition, is_it)).scalar()
        if key is None:  # it does not meet the condition any more: it has ended
            key = connection.execute(sa.select(first).where(is_it)).scalar_one()
        newest = newest.having(first < key)
    return sa.and_(condition, sa.tuple_(*entry).in_(newest))


def _date_state(job: Job) -> datetime | None:
    """Return when a job came into its state, by the clock of its host; None: no host has dated this state."""
    if job.state in TERMINAL:
        return job.ended_at
    return job.started_at if job.state is State.RUNNING else None


def _state_changes(before: Experiment, after: Experiment, now: datetime) -> Iterator[dict[str, Any]]:
    """Give the row of an event for each change of state: the jobs in the order of time, then the experiment.

    A job's start and end have the time of its host, as its lines have, so that the stream can merge them by time. An
    experiment runs from the start of its last job on.
    """
    changes = [
        (_date_state(new) or now, new)
        for old, new in zip(before.jobs, after.jobs, strict=True)
        if _shown_state(old) != _shown_state(new)
    ]
    for at, new in sorted(changes, key=lambda change: change[0]):
        values = _event_columns(after.id, new, at)
        yield values | {"job": new.name, "attempt": new.attempt, "exit_code": new.exit_code}
    if _shown_state(before) != _shown_state(after):
        attempt = max((job.attempt for job in after.jobs), default=1)
        last = max([at for at, _ in changes], default=now)
        began = after.state is State.RUNNING and after.placed_at is not None and changes
        moment = max(last, after.placed_at or last) if began else max(last, now)
        yield _event_columns(after.id, after, moment) | {"job": None, "attempt": attempt, "exit_code": None}


def _shown_state(record: Experiment | Job) -> tuple[State, Reason, str]:
    return record.state, record.reason, record.message


def _event_columns(experiment: int, record: Experiment | Job, now: datetime) -> dict[str, Any]:
    state, reason, message = _shown_state(record)
    return {"experiment_id": experiment, "at": now, "state": state.value, "reason": reason.value, "message": message}


def _to_event(row: sa.RowMapping) -> StateEvent:
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
