"""Pages of a user's experiments: filtered and sorted by the database, so that a page costs what its own rows cost.

A set is one entry: it is on a page when one of its members meets the conditions, and then with all of its members. With
10,000 experiments the database looks at all of them in about 10 ms; building the records of a page takes as long.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import sqlalchemy as sa

from riseml.states import State
from riseml.store.database import Database
from riseml.store.experiments import ExperimentDetail, select_details
from riseml.store.schema import experiments

LONGEST_TEXT = 200  # characters of a text that is looked for
_MOST_WORDS = 10


class PageSort(Enum):
    """What pages are sorted by."""

    NUMBER = "number"
    PROJECT = "project"
    STATE = "state"
    CREATED = "created"
    STARTED = "started"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class PageQuery:
    """Which experiments are on a page, and in which order."""

    sort: PageSort = PageSort.NUMBER
    descending: bool = True
    limit: int = 100  # numbers on the page; a set has one number
    offset: int = 0  # numbers before the page
    ended: bool = True  # whether those that have ended are among them
    companions: bool = True
    project: str | None = None
    states: tuple[State, ...] = ()  # one of these; empty: any
    text: str = ""  # words that all are in the project, the number, the state or the parameters; upper case is the same
    before: int | None = None  # only numbers below this one


_Aggregate = Callable[[Any], sa.ColumnElement[Any]]
_ORDERS: Mapping[PageSort, tuple[_Aggregate, sa.Column[Any]]] = {
    PageSort.NUMBER: (sa.func.min, experiments.c.number),
    PageSort.PROJECT: (sa.func.min, experiments.c.project),
    PageSort.STATE: (sa.func.min, experiments.c.state),
    PageSort.CREATED: (sa.func.min, experiments.c.created_at),
    PageSort.STARTED: (sa.func.min, experiments.c.started_at),
    PageSort.ENDED: (sa.func.max, experiments.c.ended_at),
}
"""How the members of a set come to one value; the key of a set is one of its members' where they differ."""


class ExperimentPages:
    """Reads pages from one database. Safe from many threads."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read_page(self, user: str, query: PageQuery) -> tuple[ExperimentDetail, ...]:
        """Return the experiments of a page in its order; the members of a set follow each other.

        What has no value of the sort key, such as the end of an experiment that runs, is last.
        """
        aggregate, column = _ORDERS[query.sort]
        key = aggregate(column)
        number = experiments.c.number
        chosen = (
            sa.select(number)
            .where(_choose_experiments(user, query))
            .group_by(number)
            .order_by((key.desc() if query.descending else key.asc()).nulls_last(), number.desc())
            .limit(query.limit)
            .offset(query.offset)
        )
        with self._database.read_transaction() as connection:
            numbers = connection.execute(chosen).scalars().all()
            found = select_details(connection, sa.and_(experiments.c.user == user, number.in_(numbers)))
        places = {one: place for place, one in enumerate(numbers)}
        return tuple(sorted(found, key=lambda detail: places[detail.experiment.number]))


def _choose_experiments(user: str, query: PageQuery) -> sa.ColumnElement[bool]:
    conditions = [experiments.c.user == user]
    if query.project is not None:
        conditions.append(experiments.c.project == query.project)
    if query.states:
        conditions.append(experiments.c.state.in_([state.value for state in query.states]))
    if query.before is not None:
        conditions.append(experiments.c.number < query.before)
    if not query.ended:
        conditions.append(sa.and_(experiments.c.closed.is_(False), experiments.c.ended_at.is_(None)))
    if not query.companions:
        conditions.append(experiments.c.plan["companion"]["kind"].as_string().is_(None))
    parameters = sa.cast(experiments.c.plan["parameters"], sa.Text)
    number = sa.cast(experiments.c.number, sa.Text)
    for word in re.split(r"[\s=]+", query.text.strip())[:_MOST_WORDS]:
        texts = (experiments.c.project, experiments.c.state, parameters)
        if word:
            conditions.append(sa.or_(*(one.icontains(word, autoescape=True) for one in texts), number == word))
    return sa.and_(*conditions)
