"""Pages of a user's experiments: filtered and sorted by the database, so that a page costs what its own rows cost.

A set is one entry: it is on a page when one of its members meets the conditions, and then with all of its members. With
10,000 experiments the database looks at all of them in about 10 ms; building the records of a page takes as long.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import sqlalchemy as sa

from riseml.base.records import dataclass
from riseml.base.states import State
from riseml.model import Caller
from riseml.store.annotations import NO_FILTER, AnnotationFilter, contains_word, list_conditions
from riseml.store.database import Database
from riseml.store.experiments import ExperimentDetail, find_open, select_details
from riseml.store.metrics.last_values import LastValues, select_last_values
from riseml.store.schema import experiment_annotations, experiment_tags, experiments
from riseml.store.visibility import select_visible

LONGEST_TEXT = 200  # characters of a search text
_MOST_WORDS = 10
_MOST_NUMBER = 2**31 - 1  # largest number of an experiment: what every database can count


class PageSort(Enum):
    """What pages are sorted by."""

    NUMBER = "number"
    PROJECT = "project"
    STATE = "state"
    CREATED = "created"
    STARTED = "started"
    ENDED = "ended"
    METRIC = "metric"  # the last value of `PageQuery.metric`


@dataclass(frozen=True, slots=True)
class PageQuery:
    """Which experiments are on a page, and in which order."""

    sort: PageSort = PageSort.NUMBER
    descending: bool = True
    limit: int = 100  # numbers on the page; a set has one number
    offset: int = 0  # numbers before the page
    ended: bool = True  # whether to include experiments that have ended
    companions: bool = True
    project: str | None = None
    states: tuple[State, ...] = ()  # one of these; empty: any
    # words, each of which is in the project, the number, the state, the parameters, the name or a tag; case does not
    # matter
    text: str = ""
    annotation_filter: AnnotationFilter = NO_FILTER
    before: int | None = None  # only numbers below this one
    metric: str = ""  # only experiments that have reported this metric, a finite value last; empty: any
    least: float | None = None  # only experiments whose last value is at least this
    most: float | None = None  # only experiments whose last value is at most this
    caller: Caller | None = None  # only experiments that they see; None: all


_Aggregate = Callable[[Any], sa.ColumnElement[Any]]
_ORDERS: Mapping[PageSort, tuple[_Aggregate, sa.ColumnElement[Any]]] = {
    PageSort.NUMBER: (sa.func.min, experiments.c.number),
    PageSort.PROJECT: (sa.func.min, experiments.c.project),
    PageSort.STATE: (sa.func.min, experiments.c.state),
    PageSort.CREATED: (sa.func.min, experiments.c.created_at),
    PageSort.STARTED: (sa.func.min, experiments.c.started_at),
    PageSort.ENDED: (sa.func.max, experiments.c.ended_at),
}
"""How the values of a set's members become one sort value. By metric, a set has the value that comes first in the
order.
"""


class ExperimentPages:
    """Reads pages from one database. Safe from many threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.last_values = LastValues(database)

    def read_page(self, user: str, query: PageQuery) -> tuple[ExperimentDetail, ...]:
        """Return the experiments of a page in its order; the members of a set follow each other.

        Entries without a value of the sort key, such as the end of a running experiment, are last.

        Raises:
            KeyError: the page is sorted by a metric, and the query names none.
        """
        number = experiments.c.number
        with self._database.read_transaction() as connection:
            source, key, conditions = _add_metric(connection.dialect, query)
            annotated: list[sa.ColumnElement[bool]] = []
            if query.annotation_filter != NO_FILTER:
                annotated = list_conditions(
                    user, query.annotation_filter, connection.dialect, find_open(connection, user)
                )
            chosen = (
                sa.select(number)
                .select_from(source)
                .where(_choose_experiments(connection.dialect, user, query), *conditions, *annotated)
                .group_by(number)
                .order_by((key.desc() if query.descending else key.asc()).nulls_last(), number.desc())
                .limit(query.limit)
                .offset(query.offset)
            )
            numbers = connection.execute(chosen).scalars().all()
            details = select_details(connection, sa.and_(experiments.c.user == user, number.in_(numbers)))
        places = {experiment_number: place for place, experiment_number in enumerate(numbers)}
        return tuple(sorted(details, key=lambda detail: places[detail.experiment.number]))


def _add_metric(
    dialect: sa.Dialect, query: PageQuery
) -> tuple[sa.FromClause, sa.ColumnElement[Any], list[sa.ColumnElement[bool]]]:
    """Return the source of the rows, the sort expression, and the conditions of the metric."""
    if not query.metric:
        aggregate, column = _ORDERS[query.sort]
        return experiments, aggregate(column), []
    last_values = select_last_values(dialect, query.metric).subquery()
    last = last_values.c.last
    conditions: list[sa.ColumnElement[bool]] = [last.is_not(None)]
    if query.least is not None:
        conditions.append(last >= query.least)
    if query.most is not None:
        conditions.append(last <= query.most)
    first: _Aggregate = sa.func.max if query.descending else sa.func.min
    aggregate, column = _ORDERS.get(query.sort, (first, last))
    return experiments.join(last_values, last_values.c.experiment_id == experiments.c.id), aggregate(column), conditions


def _choose_experiments(dialect: sa.Dialect, user: str, query: PageQuery) -> sa.ColumnElement[bool]:
    conditions = [experiments.c.user == user]
    if query.caller is not None:
        conditions.append(select_visible(query.caller))
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
    words = filter(None, re.split(r"[\s=]+", query.text.strip())[:_MOST_WORDS])
    return sa.and_(*conditions, *(_find_word(dialect, user, word) for word in words))


def _find_word(dialect: sa.Dialect, user: str, word: str) -> sa.ColumnElement[bool]:
    """Return the condition that a word is in the state, the number, the project, the parameters, the name or a tag.

    The states and the number are compared here, once, and not for each row. SQLite's LIKE ignores the case of ASCII
    letters, as its lower() does, and its json_extract returns the text of a list: both save a call for each row.
    """
    states = [state.value for state in State if word.lower() in state.value.lower()]
    conditions: list[sa.ColumnElement[bool]] = [experiments.c.state.in_(states)] if states else []
    if word.isascii() and word.isdecimal() and str(int(word)) == word and int(word) <= _MOST_NUMBER:
        conditions.append(experiments.c.number == int(word))
    project = experiments.c.project
    written = json.dumps(word)[1:-1]  # the store has the parameters as JSON
    if dialect.name == "sqlite":
        parameters = sa.func.json_extract(experiments.c.plan, "$.parameters", type_=sa.Text)
        conditions += [project.contains(word, autoescape=True), parameters.contains(written, autoescape=True)]
    else:
        text = sa.cast(experiments.c.plan["parameters"], sa.Text)
        conditions += [project.icontains(word, autoescape=True), text.icontains(written, autoescape=True)]
    return sa.or_(*conditions, _find_annotated(dialect, user, word))


def _find_annotated(dialect: sa.Dialect, user: str, word: str) -> sa.ColumnElement[bool]:
    """Return the condition that a word is in the name or in a tag; the database looks for these once."""
    has_tag = experiment_tags.c.tag.contains if dialect.name == "sqlite" else experiment_tags.c.tag.icontains
    named = sa.select(experiment_annotations.c.number).where(
        experiment_annotations.c.user == user, contains_word(dialect, word)
    )
    tagged = sa.select(experiment_tags.c.number).where(experiment_tags.c.user == user, has_tag(word, autoescape=True))
    return experiments.c.number.in_(named.union(tagged))
