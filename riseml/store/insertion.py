"""New experiments as rows: those of a submission, and the trials that a search makes later."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from riseml.base.annotations import NO_ANNOTATION, Annotation
from riseml.base.records import dataclass
from riseml.base.states import Reason, State, Wanted
from riseml.model import Environment, Job, Owner, Plan, Point, Resolved, SearchPlan
from riseml.planning.trial_plan import Template
from riseml.spec.config.types import EnvVariable
from riseml.store.annotations import Subject, insert_annotation
from riseml.store.codec import to_json
from riseml.store.lost_numbers import choose_id, find_last_number
from riseml.store.rows import job_values, write_resolved
from riseml.store.schema import events, experiments, jobs, sets, trials

Seal = Callable[[str, int, Environment], Environment]
"""Returns variables as the store keeps them, for a user and the number of an experiment or set."""


def keep_values(user: str, number: int, variables: Environment) -> Environment:
    """Return the variables as they are: those that were sealed before."""
    return variables


AdmitChange = Callable[[sa.Connection], AbstractContextManager[None]]
"""Lets a change of a set in, or refuses it: the change is stored within the context that it returns."""


def admit_change(_connection: sa.Connection) -> AbstractContextManager[None]:
    """Let every change of a set in: the server has one user."""
    return nullcontext()


def admit_all(connection: sa.Connection, submitted: NewExperiments) -> None:
    """Let every submission in: the server has one user."""


@dataclass(frozen=True, slots=True)
class NewSearch:
    """The search of a new set. Its first trial is stored with it, so that a set is never empty."""

    plan: SearchPlan
    templates: tuple[Template, ...]
    variables: tuple[EnvVariable, ...] = ()  # `train.env`


@dataclass(frozen=True, slots=True)
class NewExperiments:
    """What a submission adds to the store: a single experiment, or a set with one for each point of the grid."""

    owner: Owner
    project: str
    config: str  # text of the riseml.yml
    snapshot: str  # digest of the project archive; empty without files
    plans: tuple[tuple[Plan, tuple[Job, ...]], ...]  # plan of each experiment, with the first records of its jobs
    environment: Environment = ()  # variables from the caller; they may be secrets
    notes: tuple[str, ...] = ()  # warnings about the riseml.yml
    team_project: str | None = None  # whose members see it; None: it belongs to its user alone
    key: str | None = None  # from the client: the same key is stored once per user
    concurrency: int | None = None  # experiments of the set that run at the same time; None: no set
    search: NewSearch | None = None  # None: the set has all its experiments from the beginning
    # resolved base images, where the server has asked the registry; the loop resolves the others
    resolved: Resolved = ()
    annotation: Annotation = NO_ANNOTATION  # what the user says about the experiment, or about the set as a whole


Admit = Callable[[sa.Connection, NewExperiments], None]
"""Raises `Refused` for a submission above a quota. It reads the store within the transaction that accepts it, so that
of two submissions at the same time the second one sees the first."""


def insert_experiments(
    connection: sa.Connection, submitted: NewExperiments, now: datetime, seal: Seal
) -> Iterator[int]:
    """Insert the experiments of a submission, whose variables `seal` gets, and give their ids."""
    number = 1 + find_last_number(connection, submitted.owner.user)
    submitted = replace(submitted, environment=seal(submitted.owner.user, number, submitted.environment))
    insert_annotation(connection, submitted.owner.user, Subject(number), submitted.annotation)
    set_id = None
    if submitted.concurrency is not None:
        values = {"user": submitted.owner.user, "number": number, "project": submitted.project, "created_at": now}
        values |= _search_columns(submitted)
        inserted = connection.execute(sets.insert().values(**values, concurrency=submitted.concurrency))
        set_id = _inserted_id(inserted)
    for index, (plan, first) in enumerate(submitted.plans, start=1):
        row = _first_columns(submitted, plan, number, now)
        row |= {"set_id": set_id, "sub": None if set_id is None else index}
        identity = _insert_member(connection, row, first)
        if submitted.search is not None and set_id is not None:
            insert_trial(connection, set_id, index, (identity, plan.parameters, 0))
        yield identity


def insert_trial(connection: sa.Connection, set_id: int, number: int, trial: tuple[int, Point, int]) -> None:
    """Insert the row of a trial. `trial`: the id of its experiment, its point, and how many results the search had."""
    experiment, point, asked_after = trial
    values = {"experiment_id": experiment, "point": to_json(point), "asked_after": asked_after}
    connection.execute(trials.insert().values(set_id=set_id, number=number, **values))


def insert_member(
    connection: sa.Connection, first: Mapping[str, Any], new: tuple[Plan, tuple[Job, ...], int], now: datetime
) -> int:
    """Insert a later experiment of a search, and return its id.

    Args:
        connection: in a transaction.
        first: the row of the set's first experiment, with the variables of the set as its `environment`. Its submission
        and its resolved image apply to all.
        new: the plan, the first records of its jobs, and its number within the set.
        now: the time.
    """
    plan, jobs_of_plan, sub = new
    columns = "user uid gid number set_id project config snapshot resolved environment notes team_project"
    row = {name: first[name] for name in columns.split()} | {"plan": to_json(plan), "sub": sub, **_state_columns(now)}
    return _insert_member(connection, row, jobs_of_plan)


def _insert_member(connection: sa.Connection, row: dict[str, Any], first: tuple[Job, ...]) -> int:
    identity = _inserted_id(connection.execute(experiments.insert().values(**row, **choose_id(connection))))
    connection.execute(jobs.insert(), [job_values(identity, at, job) for at, job in enumerate(first)])
    connection.execute(events.insert(), list(_first_events(identity, first, row["created_at"])))
    return identity


def _search_columns(submitted: NewExperiments) -> dict[str, Any]:
    search = submitted.search
    if search is None:
        return {}
    return {
        "search": to_json(search.plan),
        "templates": [[to_json(values), to_json(plan)] for values, plan in search.templates],
        "environment": to_json(submitted.environment),
        "variables": to_json(search.variables),
        "most_trials": search.plan.search.trials,
    }


def _inserted_id(result: sa.CursorResult[Any]) -> int:
    key = result.inserted_primary_key
    if key is None:
        raise LookupError("the database returned no key for a new row")
    return int(key[0])


def _first_columns(submitted: NewExperiments, plan: Plan, number: int, now: datetime) -> dict[str, Any]:
    owner = submitted.owner
    return {
        "user": owner.user,
        "uid": owner.uid,
        "gid": owner.gid,
        "number": number,
        "project": submitted.project,
        "team_project": submitted.team_project,
        "config": submitted.config,
        "plan": to_json(plan),
        "snapshot": submitted.snapshot,
        "resolved": write_resolved(submitted.resolved),
        "environment": to_json(submitted.environment),
        "notes": list(submitted.notes),
        "key": submitted.key,
        **_state_columns(now),
    }


def _state_columns(now: datetime) -> dict[str, Any]:
    return {
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
