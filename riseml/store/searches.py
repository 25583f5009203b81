"""Searches and their trials in SQL. Each change is one transaction; a change that comes too late does nothing."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from riseml.analysis.ranking import Objective, list_objectives
from riseml.base.errors import Refused
from riseml.base.records import dataclass
from riseml.base.states import TERMINAL, Reason, State, Wanted
from riseml.model import (
    MOST_TRIALS,
    Environment,
    Job,
    Plan,
    Point,
    SearchEnd,
    SearchPlan,
    SearchRecord,
    Trial,
    TrialOutcome,
)
from riseml.planning.repetition import strip_seed
from riseml.planning.trial_plan import Template
from riseml.spec.config.types import EnvVariable
from riseml.store.codec import from_json, to_json
from riseml.store.database import Database
from riseml.store.insertion import AdmitChange, Seal, admit_change, insert_member, insert_trial, keep_values
from riseml.store.journal import AcceptedRecord, ExperimentJournal
from riseml.store.marks import is_set_kept
from riseml.store.schema import experiments, kept_outputs, sets, trials

_IDS_PER_QUERY = 500
_RECORD = (
    *(sets.c.id, sets.c.user, sets.c.number, sets.c.search, sets.c.concurrency, sets.c.wanted, sets.c.most_trials),
    *(sets.c.search_end, sets.c.variables, sets.c.paused),
)  # without the templates of its trials, which may be large


@dataclass(frozen=True, slots=True)
class NewTrial:
    """A trial that is about to be made."""

    number: int  # within its set
    plan: Plan
    jobs: tuple[Job, ...]  # their first records
    asked_after: int  # trials whose results the search had when its point was chosen
    point_number: int  # of its point among those of the search; with `repeat` a point has several trials


@dataclass(frozen=True, slots=True)
class ToldTrial:
    """The result of a trial that has ended."""

    number: int
    outcome: TrialOutcome
    value: float | None = None  # value of the metric
    message: str = ""  # why it counts as failed
    values: tuple[float, ...] = ()  # of several objectives, `value` first; empty: `value` is all
    excess: float = 0.0  # by how much its metrics fail the constraints; 0: they meet all


@dataclass(frozen=True, slots=True)
class SetChange:
    """What a user changes of a set that goes on."""

    paused: bool | None = None  # no further experiment of it starts; None: as it is
    concurrency: int | None = None  # experiments that run at the same time; None: as it is
    stop: bool = False  # what has not begun never begins, and what runs goes on


class SearchStore:
    """The searches in one database. Safe from many threads.

    Args:
        database: has them.
        journal: gets the trials that are made; None: nothing does.
    """

    def __init__(self, database: Database, journal: ExperimentJournal | None = None) -> None:
        self._database = database
        self._journal = journal
        # the trials with results of open searches, by the key of the set, as `load_open` read them: they change no more
        self._told: Mapping[int, tuple[Trial, ...]] = {}

    def load_open(self) -> tuple[SearchRecord, ...]:
        """Return the searches that may make further trials, oldest first. Of their trials, read only those again that
        had no result at the last call."""
        cached = self._told
        values = {f"set_{place}": set_id for place, set_id in enumerate(cached)}
        values |= {f"told_{place}": len(earlier) for place, earlier in enumerate(cached.values())}
        records = self._read_records(_query_open(len(cached)), values)
        whole = tuple(_add_trials(record, cached.get(record.id, ())) for record in records)
        self._told = {record.id: tuple(trial for trial in record.trials if trial.told is not None) for record in whole}
        return whole

    def count_open(self) -> int:
        """Return how many searches may make further trials."""
        condition = sa.and_(sets.c.search.isnot(None), sets.c.search_end.is_(None))
        with self._database.read_transaction() as connection:
            return connection.execute(sa.select(sa.func.count()).select_from(sets).where(condition)).scalar_one()

    def load_searches(self, ids: Collection[int]) -> Mapping[int, SearchRecord]:
        """Return the searches among these sets, by the key of the set."""
        searches: dict[int, SearchRecord] = {}
        sorted_ids = sorted(ids)
        for start in range(0, len(sorted_ids), _IDS_PER_QUERY):
            some = sa.and_(sets.c.search.isnot(None), sets.c.id.in_(sorted_ids[start : start + _IDS_PER_QUERY]))
            searches |= {record.id: record for record in self._load_records(some)}
        return searches

    def load_plans(self, ids: Collection[int]) -> Mapping[int, SearchPlan]:
        """Return the plans of the searches among these sets by the keys of the sets, without their trials."""
        sorted_ids = sorted(ids)
        texts: dict[int, Any] = {}
        with self._database.read_transaction() as connection:
            for start in range(0, len(sorted_ids), _IDS_PER_QUERY):
                some = sa.and_(sets.c.search.isnot(None), sets.c.id.in_(sorted_ids[start : start + _IDS_PER_QUERY]))
                rows = connection.execute(sa.select(sets.c.id, sets.c.search).where(some))
                texts |= {identity: text for identity, text in rows}
        return {identity: from_json(text, SearchPlan) for identity, text in texts.items()}

    def load_values(self, ids: Collection[int], objective: Objective) -> dict[int, float]:
        """Return the values of the trials of these sets, by the keys of their experiments: of trials with a stored
        result that has one, and of the sets that search for this objective."""
        values: dict[int, float] = {}
        with self._database.read_transaction() as connection:
            plans = connection.execute(
                sa.select(sets.c.id, sets.c.search).where(sets.c.search.isnot(None), sets.c.id.in_(sorted(ids)))
            ).all()
            for identity, text in plans:
                objectives = list_objectives(from_json(text, SearchPlan).search)
                if objective not in objectives:
                    continue
                place = objectives.index(objective)
                has_value = sa.and_(trials.c.set_id == identity, trials.c.value.isnot(None))
                columns = (trials.c.experiment_id, trials.c.value, trials.c.scores)
                values |= {
                    experiment: value if len(objectives) == 1 else scores[place]
                    for experiment, value, scores in connection.execute(sa.select(*columns).where(has_value))
                }
        return values

    def list_members(self, set_id: int, skip: int = 0) -> tuple[int, ...]:
        """Return the ids of the experiments of a set but the first `skip`, in the order of their numbers."""
        with self._database.single_read() as connection:
            return tuple(connection.execute(_query_members(), {"set": set_id, "skip": skip}).scalars())

    def has_search(self, set_id: int) -> bool:
        """Return True for a set whose points a search chooses."""
        condition = sa.and_(sets.c.id == set_id, sets.c.search.isnot(None))
        with self._database.read_transaction() as connection:
            return connection.execute(sa.select(sets.c.id).where(condition)).first() is not None

    def goes_on(self, set_id: int) -> bool:
        """Return True while a search may make further trials of this set."""
        with self._database.single_read() as connection:
            return connection.execute(_query_going(), {"set": set_id}).first() is not None

    def load_wanted(self, set_id: int) -> Wanted:
        """Return what the user wants of a set, with a search or without one."""
        with self._database.read_transaction() as connection:
            return Wanted(connection.execute(sa.select(sets.c.wanted).where(sets.c.id == set_id)).scalar_one())

    def load_templates(self, set_id: int) -> tuple[Template, ...]:
        """Return what the trials of a search run."""
        with self._database.read_transaction() as connection:
            rows = connection.execute(sa.select(sets.c.templates).where(sets.c.id == set_id)).scalar()
        return tuple((_read_pairs(values), from_json(plan, Plan)) for values, plan in rows or ())

    def add_trial(self, set_id: int, new: NewTrial, now: datetime) -> int | None:
        """Store a trial with its experiment, and return the id of that experiment.

        None: the trial exists already, or the search ends or is paused; then nothing is stored.
        """
        with self._database.write_transaction() as connection:
            going = sa.and_(sets.c.id == set_id, sets.c.search_end.is_(None), sets.c.wanted == Wanted.RUN.value)
            going = sa.and_(going, sets.c.paused.is_(False))
            row = connection.execute(sa.select(sets.c.environment, sets.c.most_trials).where(going)).mappings().first()
            last = connection.execute(sa.select(sa.func.max(trials.c.number)).where(trials.c.set_id == set_id)).scalar()
            if row is None or new.number != 1 + (last or 0) or new.point_number > row["most_trials"]:
                return None
            first = experiments.c.set_id == set_id, experiments.c.sub == 1
            first_row = connection.execute(sa.select(experiments).where(*first)).mappings().one()
            first_values: dict[str, Any] = {str(name): value for name, value in first_row.items()}
            member = (new.plan, new.jobs, new.number)
            is_kept = is_set_kept(connection, set_id)
            identity = insert_member(connection, first_values | {"environment": row["environment"] or []}, member, now)
            insert_trial(connection, set_id, new.number, (identity, new.plan.parameters, new.asked_after))
            if is_kept:
                connection.execute(kept_outputs.insert().values(experiment_id=identity, at=now))
        if self._journal is not None:
            self._journal.note_accepted([AcceptedRecord(identity, first_values["user"], first_values["number"], now)])
        return identity

    def tell_trial(self, set_id: int, trial: ToldTrial) -> bool:
        """Store the result of a trial. Return False when it is stored already."""
        with self._database.write_transaction() as connection:
            order = sa.select(sa.func.coalesce(sa.func.max(trials.c.told), 0) + 1).where(trials.c.set_id == set_id)
            place = connection.execute(order).scalar_one()
            values = {"outcome": trial.outcome.value, "value": trial.value, "message": trial.message, "told": place}
            values |= {"scores": list(trial.values) or None, "excess": trial.excess}
            condition = sa.and_(trials.c.set_id == set_id, trials.c.number == trial.number, trials.c.outcome.is_(None))
            return connection.execute(trials.update().where(condition).values(**values)).rowcount == 1

    def note_reached(self, set_id: int, number: int, reached: Sequence[tuple[int, float]], *, stops: bool) -> bool:
        """Store the steps at which a trial was compared; when it must stop, also write that into its experiment.

        Returns:
            False when not all of this was stored: nothing, because the trial has ended or stops already; or only the
            steps, because the trial must stop and its experiment has just ended or is killed.
        """
        with self._database.write_transaction() as connection:
            condition = sa.and_(
                trials.c.set_id == set_id,
                trials.c.number == number,
                trials.c.outcome.is_(None),
                trials.c.stopped.is_(False),
            )
            values = {"reached": [[step, repr(value)] for step, value in reached]}
            if connection.execute(trials.update().where(condition).values(**values)).rowcount == 0:
                return False
            if not stops:
                return True
            stopped = connection.execute(
                experiments.update()
                .where(experiments.c.set_id == set_id, experiments.c.sub == number)
                .where(experiments.c.ended_at.is_(None), experiments.c.wanted == Wanted.RUN.value)
                .values(wanted=Wanted.STOP.value, version=experiments.c.version + 1)
            )
            if stopped.rowcount == 0:
                return False
            connection.execute(trials.update().where(condition).values(stopped=True))
            return True

    def end_search(self, decided: SearchRecord, end: SearchEnd) -> bool:
        """Store that a search makes no further trials, and erase its variables: they may be secrets.

        Args:
            decided: the record from which the end was decided.
            end: why it ends.

        Returns:
            False when it has ended already, or when the user has added trials or killed it since; nothing is stored.
        """
        same = sets.c.most_trials == decided.most_trials, sets.c.wanted == decided.wanted.value
        with self._database.write_transaction(vital=True) as connection:
            condition = sa.and_(sets.c.id == decided.id, sets.c.search_end.is_(None), *same)
            ended = sets.update().where(condition).values(search_end=end.value, environment=None)
            return connection.execute(ended).rowcount == 1

    def continue_search(
        self,
        set_id: int,
        more: int,
        environment: Environment,
        seal: Seal = keep_values,
        admit: AdmitChange = admit_change,
    ) -> None:
        """Store that a search makes `more` further trials, with the variables that `seal` returns, if `admit` lets it.

        Raises:
            Refused: the set would have too many trials, including those that were added before, or `admit` refuses it.
        """
        values = {"search_end": None, "wanted": Wanted.RUN.value}
        with self._database.write_transaction() as connection:
            columns = (sets.c.user, sets.c.number, sets.c.search_end, sets.c.wanted, sets.c.most_trials, sets.c.search)
            row = connection.execute(sa.select(*columns).where(sets.c.id == set_id)).one()
            user = row.user
            number = row.number
            plan = from_json(row.search, SearchPlan)
            repeat = max(1, len(plan.seeds))
            goes_on = row.search_end is None and row.wanted == Wanted.RUN.value
            total = row.most_trials if goes_on else _count_points(connection, set_id, plan)
            if (total + more) * repeat > MOST_TRIALS:
                runs = f" with {repeat} runs each" if repeat > 1 else ""
                raise Refused(
                    f"set {number} has {total} trials{runs} with those to come, and a set has at most {MOST_TRIALS:,}",
                    "run `riseml train` for a new set",
                )
            sealed = to_json(seal(user, number, environment))
            changes = {"most_trials": total + more, "environment": sealed, **values}
            with admit(connection):
                connection.execute(sets.update().where(sets.c.id == set_id).values(**changes))

    def request_end(self, set_id: int) -> bool:
        """Store that the user has ended this search: it makes no further trials. True: it made some before."""
        is_alive = sets.c.wanted != Wanted.KILL.value
        going = sa.and_(sets.c.search.isnot(None), sets.c.search_end.is_(None), is_alive)
        with self._database.write_transaction(vital=True) as connection:
            before = connection.execute(sa.select(sets.c.id).where(sets.c.id == set_id, going)).first()
            connection.execute(sets.update().where(sets.c.id == set_id).values(wanted=Wanted.KILL.value))
            return before is not None

    def change_set(self, set_id: int, change: SetChange, admit: AdmitChange = admit_change) -> None:
        """Store what a user wants of a set, with a search or without one. Repeated, it changes nothing further.

        The records of its open experiments get a new version: the control loop reads them again, and drops what it has
        decided from the older ones.

        Raises:
            Refused: `admit` refuses it: nothing is stored.
        """
        values: dict[str, Any] = {}
        if change.paused is not None:
            values["paused"] = change.paused
        if change.concurrency is not None:
            values["concurrency"] = change.concurrency
        members = experiments.c.set_id == set_id, experiments.c.ended_at.is_(None)
        fresh = {"version": experiments.c.version + 1}
        with self._database.write_transaction(vital=True) as connection:
            if change.stop:
                is_running = sets.c.id == set_id, sets.c.wanted == Wanted.RUN.value
                connection.execute(sets.update().where(*is_running).values(wanted=Wanted.STOP.value))
                waiting = *members, experiments.c.placed_at.is_(None), experiments.c.started_at.is_(None)
                not_begun = experiments.update().where(*waiting, experiments.c.wanted == Wanted.RUN.value)
                connection.execute(not_begun.values(wanted=Wanted.KILL.value, **fresh))
            if values:
                with admit(connection):
                    connection.execute(sets.update().where(sets.c.id == set_id).values(**values))
                connection.execute(experiments.update().where(*members).values(**fresh))

    def _load_records(self, condition: sa.ColumnElement[bool]) -> tuple[SearchRecord, ...]:
        """Return the searches that meet a condition, with all of their trials."""
        return self._read_records(_query_records(condition, sa.true()), {})

    def _read_records(self, queries: _RecordQueries, values: Mapping[str, int]) -> tuple[SearchRecord, ...]:
        of_searches, of_trials = queries
        with self._database.read_transaction() as connection:
            rows = connection.execute(of_searches).mappings().all()
            tried = connection.execute(of_trials, values).mappings().all() if rows else []
        by_set: dict[int, list[Trial]] = {}
        for row in tried:
            by_set.setdefault(row["set_id"], []).append(_to_trial(row))
        return tuple(_to_record(row, tuple(by_set.get(row["id"], ()))) for row in rows)


_RecordQueries = tuple[sa.Select[Any], sa.Select[Any]]
"""The queries for searches and for their trials."""


def _query_records(condition: sa.ColumnElement[bool], of_trials: sa.ColumnElement[bool]) -> _RecordQueries:
    columns = (experiments.c.state, experiments.c.reason, experiments.c.closed, experiments.c.placed_at)
    query = (
        sa.select(trials, *columns)
        .join(experiments, experiments.c.id == trials.c.experiment_id)
        .join(sets, sets.c.id == trials.c.set_id)
        .where(condition, of_trials)
        .order_by(trials.c.set_id, trials.c.number)
    )
    return sa.select(*_RECORD).where(condition).order_by(sets.c.id), query


# A search of short trials makes most of its queries with these. They are made once: making a query takes longer than
# SQLite takes for its answer.


@functools.lru_cache(maxsize=32)
def _query_open(set_count: int) -> _RecordQueries:
    """Return the queries for open searches, and for their trials without those with results that are known.

    Args:
        set_count: of how many sets (`set_0` and so on) trials with results are known (`told_0` and so on, how many).
    """
    sets_known = [sa.bindparam(f"set_{place}", type_=sa.Integer) for place in range(set_count)]
    are_fresh = [
        sa.and_(trials.c.set_id == identity, trials.c.told > sa.bindparam(f"told_{place}", type_=sa.Integer))
        for place, identity in enumerate(sets_known)
    ]
    is_unknown = sa.and_(sa.true(), *(trials.c.set_id != identity for identity in sets_known))
    still_open = sa.and_(sets.c.search.isnot(None), sets.c.search_end.is_(None))
    return _query_records(still_open, sa.or_(trials.c.told.is_(None), is_unknown, *are_fresh))


@functools.cache
def _query_members() -> sa.Select[int]:
    members = sa.select(experiments.c.id).where(experiments.c.set_id == sa.bindparam("set"))
    return members.order_by(experiments.c.sub).offset(sa.bindparam("skip", type_=sa.Integer))


@functools.cache
def _query_going() -> sa.Select[int]:
    still_open = sa.and_(sets.c.search.isnot(None), sets.c.search_end.is_(None))
    return sa.select(sets.c.id).where(sets.c.id == sa.bindparam("set"), still_open)


def _count_points(connection: sa.Connection, set_id: int, plan: SearchPlan) -> int:
    rows = connection.execute(sa.select(trials.c.point).where(trials.c.set_id == set_id)).scalars()
    points = [_read_pairs(point) for point in rows]
    return len(points) if plan.search.pbt is not None else len(set(map(strip_seed, points)))


def _add_trials(record: SearchRecord, earlier: tuple[Trial, ...]) -> SearchRecord:
    """Return a search with trials that were read earlier."""
    if not earlier:
        return record
    return replace(record, trials=tuple(sorted((*earlier, *record.trials), key=lambda trial: trial.number)))


def _to_record(row: sa.RowMapping, tried: tuple[Trial, ...]) -> SearchRecord:
    return SearchRecord(
        id=row["id"],
        user=row["user"],
        number=row["number"],
        plan=from_json(row["search"], SearchPlan),
        concurrency=row["concurrency"],
        wanted=Wanted(row["wanted"]),
        most_trials=row["most_trials"],
        paused=row["paused"],
        trials=tried,
        end=None if row["search_end"] is None else SearchEnd(row["search_end"]),
        variables=from_json(row["variables"] or [], tuple[EnvVariable, ...]),
    )


def _to_trial(row: sa.RowMapping) -> Trial:
    state = State(row["state"])
    return Trial(
        number=row["number"],
        experiment=row["experiment_id"],
        point=_read_pairs(row["point"]),
        asked_after=row["asked_after"],
        placed=row["placed_at"] is not None,
        closed=row["closed"] or row["told"] is not None,
        ended=state in TERMINAL,
        finished=state is State.FINISHED,
        stopped=row["stopped"],
        stopped_early=Reason(row["reason"]) is Reason.STOPPED_EARLY,
        reached=tuple((step, float(value)) for step, value in row["reached"] or ()),
        outcome=None if row["outcome"] is None else TrialOutcome(row["outcome"]),
        told=row["told"],
        value=row["value"],
        message=row["message"],
        values=tuple(row["scores"] or ()),
        excess=row["excess"],
    )


def _read_pairs(rows: Any) -> Point:
    return tuple((name, value) for name, value in rows)
