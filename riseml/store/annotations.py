"""What users say about experiments: names, tags, notes, stars, and what lists leave out.

The rows are apart from the records of the loop: a change of a user and a decision of the loop never meet. A row belongs
to a number and a sub; sub 0 is the experiment with this number, or the set as a whole. Where nothing was said, there is
no row.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any, NamedTuple

import sqlalchemy as sa

from riseml.base.annotations import MOST_TAGS, NO_ANNOTATION, Annotation
from riseml.base.errors import Refused
from riseml.base.names import experiment_name
from riseml.base.records import dataclass
from riseml.store.database import Database
from riseml.store.schema import experiment_annotations, experiment_tags, experiments

_NUMBERS_PER_QUERY = 500


class Subject(NamedTuple):
    """What an annotation is about."""

    number: int  # of the experiment or set
    sub: int = 0  # of a member of a set; 0: the experiment, or the set as a whole


Annotations = Mapping[Subject, Annotation]
"""What was said about some experiments; those about which nothing was said are not in it."""


@dataclass(frozen=True, slots=True)
class AnnotationUpdate:
    """What a user says now. None: it stays as it is."""

    name: str | None = None  # empty: no name any more
    added: tuple[str, ...] = ()  # tags
    removed: tuple[str, ...] = ()  # tags
    note: str | None = None  # empty: no note any more
    starred: bool | None = None
    archived: bool | None = None


class Archived(Enum):
    """What a list does with archived experiments that have ended."""

    HIDDEN = "hidden"
    SHOWN = "shown"
    ONLY = "only"  # archived ones alone, also those that run


@dataclass(frozen=True, slots=True)
class AnnotationFilter:
    """Conditions on what was said about an experiment, or about one member of a set."""

    tags: tuple[str, ...] = ()  # it has all of these
    name: str = ""  # is part of its name; the case of Latin letters does not matter
    starred: bool = False  # only starred ones
    archived: Archived = Archived.SHOWN


NO_FILTER = AnnotationFilter()


class AnnotationStore:
    """The annotations in one database. Safe from many threads.

    Args:
        database: has them.

    Example:
        AnnotationStore(database).change("paul", Subject(4), AnnotationUpdate(added=("baseline",)))
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self, user: str, numbers: Collection[int]) -> Annotations:
        """Return what was said about the experiments and sets with these numbers, and about members of the sets."""
        with self._database.read_transaction() as connection:
            if len(numbers) <= _NUMBERS_PER_QUERY:
                return _select(connection, user, sorted(numbers))
            loaded = _select(connection, user)  # at once: few experiments have a row
        return {subject: annotation for subject, annotation in loaded.items() if subject.number in numbers}

    def load_of_users(self, numbers: Mapping[str, Collection[int]]) -> dict[str, Annotations]:
        """Return what was said about the experiments and sets with these numbers of each user."""
        if len(numbers) == 1:
            return {user: self.load(user, of_user) for user, of_user in numbers.items()}
        with self._database.read_transaction() as connection:
            loaded = _select_of_users(connection, sorted(numbers))
        return {
            user: {
                subject: annotation for subject, annotation in loaded.get(user, {}).items() if subject.number in of_user
            }
            for user, of_user in numbers.items()
        }

    def change(self, user: str, subject: Subject, change: AnnotationUpdate) -> Annotation:
        """Store what a user says, and return all that is said now. The same change again changes nothing.

        Raises:
            Refused: it would have too many tags.
        """
        with self._database.write_transaction() as connection:
            before = _select(connection, user, [subject.number]).get(subject, NO_ANNOTATION)
            after = _apply(before, change)
            if len(after.tags) > MOST_TAGS:
                name = experiment_name(subject.number, subject.sub or None)
                raise Refused(
                    f"{name} would have {len(after.tags)} tags, and at most {MOST_TAGS} are allowed",
                    f"`riseml tag {name} TAG --remove` removes one",
                )
            if after != before:
                _delete(connection, user, subject)
                insert_annotation(connection, user, subject, after)
        return after

    def find_subjects(self, user: str, word: str) -> dict[Subject, Annotation]:
        """Return the experiments and sets that have this name or this tag, in the order of their numbers."""
        named = sa.select(experiment_annotations.c.number).where(
            experiment_annotations.c.user == user, experiment_annotations.c.name == word
        )
        tagged = sa.select(experiment_tags.c.number).where(
            experiment_tags.c.user == user, experiment_tags.c.tag == word
        )
        with self._database.read_transaction() as connection:
            numbers = sorted(set(connection.execute(named.union(tagged)).scalars()))
            loaded = _select(connection, user, numbers)
        return {
            subject: annotation
            for subject, annotation in sorted(loaded.items())
            if annotation.name == word or word in annotation.tags
        }

    def list_words(self, user: str, prefix: str, most: int) -> list[str]:
        """Return names and tags that begin with a prefix, sorted: for a shell that completes them."""
        columns = ((experiment_annotations, experiment_annotations.c.name), (experiment_tags, experiment_tags.c.tag))
        parts = [
            sa.select(column.label("word")).where(table.c.user == user, column.startswith(prefix, autoescape=True))
            for table, column in columns
        ]
        words = sa.union(*parts).subquery()
        query = sa.select(words.c.word).where(words.c.word != "").order_by(words.c.word).limit(most)
        with self._database.read_transaction() as connection:
            return list(connection.execute(query).scalars())


def insert_annotation(connection: sa.Connection, user: str, subject: Subject, annotation: Annotation) -> None:
    """Insert what is said about an experiment that has no row; nothing when nothing is said."""
    if annotation == NO_ANNOTATION:
        return
    key = {"user": user, "number": subject.number, "sub": subject.sub}
    marks = {"starred": annotation.starred, "archived": annotation.archived}
    connection.execute(
        experiment_annotations.insert().values(**key, name=annotation.name, note=annotation.note, **marks)
    )
    rows = [{**key, "tag": tag, "position": position} for position, tag in enumerate(annotation.tags)]
    if rows:
        connection.execute(experiment_tags.insert(), rows)


def list_conditions(
    user: str | None, annotation_filter: AnnotationFilter, dialect: sa.Dialect, going_on: sa.ColumnElement[bool]
) -> list[sa.ColumnElement[bool]]:
    """Return the conditions of a filter on rows of `experiments`; a set meets them by itself or by one member.

    Args:
        user: whose they are; None: of all users.
        annotation_filter: the conditions.
        dialect: of the database.
        going_on: the condition of experiments that have not ended: lists show them, archived or not.
    """
    annotations = experiment_annotations.c
    conditions = [_is_among(user, experiment_tags, experiment_tags.c.tag == tag) for tag in annotation_filter.tags]
    if annotation_filter.name:
        conditions.append(_is_among(user, experiment_annotations, contains_word(dialect, annotation_filter.name)))
    if annotation_filter.starred:
        conditions.append(_is_among(user, experiment_annotations, annotations.starred))
    if annotation_filter.archived is Archived.ONLY:
        conditions.append(_is_among(user, experiment_annotations, annotations.archived))
    elif annotation_filter.archived is Archived.HIDDEN:
        as_a_whole = _is_among(user, experiment_annotations, annotations.archived, annotations.sub == 0)
        conditions.append(sa.or_(sa.not_(as_a_whole), _is_among(user, experiments, going_on)))
    return conditions


def _is_among(user: str | None, table: sa.Table, *conditions: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """Return the condition of experiments whose number has such a row of its user in a table; None: of all users."""
    if user is not None:
        some = sa.select(table.c.number).where(table.c.user == user, *conditions)
        return experiments.c.number.in_(some)
    entries = sa.select(table.c.user, table.c.number).where(*conditions)
    return sa.tuple_(experiments.c.user, experiments.c.number).in_(entries)


def contains_word(dialect: sa.Dialect, word: str) -> sa.ColumnElement[bool]:
    """Return the condition that a name has this text in it; the case of Latin letters does not matter."""
    name = experiment_annotations.c.name
    return name.contains(word, autoescape=True) if dialect.name == "sqlite" else name.icontains(word, autoescape=True)


def _select(connection: sa.Connection, user: str, numbers: Sequence[int] | None = None) -> dict[Subject, Annotation]:
    """Return the annotations of experiments with these numbers; None: of all."""
    return _select_of_users(connection, [user], numbers).get(user, {})


def _select_of_users(
    connection: sa.Connection, users: Sequence[str], numbers: Sequence[int] | None = None
) -> dict[str, dict[Subject, Annotation]]:
    """Return the annotations of each of these users that has some, of experiments with these numbers; None: of all."""

    def choose(table: sa.Table) -> list[sa.ColumnElement[bool]]:
        return [table.c.user.in_(users), *([] if numbers is None else [table.c.number.in_(numbers)])]

    query = sa.select(experiment_annotations).where(*choose(experiment_annotations))
    rows = connection.execute(query).mappings().all()
    if not rows:
        return {}
    columns = (experiment_tags.c[name] for name in ("user", "number", "sub", "tag"))
    tagged = sa.select(*columns).where(*choose(experiment_tags)).order_by(experiment_tags.c.position)
    tags_of: dict[tuple[str, Subject], list[str]] = {}
    for user, number, sub, tag in connection.execute(tagged):
        tags_of.setdefault((user, Subject(number, sub)), []).append(tag)
    annotations: dict[str, dict[Subject, Annotation]] = {}
    for row in rows:
        subject = _name_subject(row)
        annotation = _to_annotation(row, tags_of.get((row["user"], subject), ()))
        annotations.setdefault(row["user"], {})[subject] = annotation
    return annotations


def _name_subject(row: sa.RowMapping) -> Subject:
    return Subject(row["number"], row["sub"])


def _to_annotation(row: sa.RowMapping, its_tags: Sequence[str]) -> Annotation:
    return Annotation(row["name"], tuple(its_tags), row["note"], row["starred"], row["archived"])


def _delete(connection: sa.Connection, user: str, subject: Subject) -> None:
    for table in (experiment_tags, experiment_annotations):
        own: tuple[Any, ...] = (table.c.user == user, table.c.number == subject.number, table.c.sub == subject.sub)
        connection.execute(table.delete().where(*own))


def _apply(before: Annotation, change: AnnotationUpdate) -> Annotation:
    left_tags = [tag for tag in before.tags if tag not in change.removed]
    return replace(
        before,
        name=before.name if change.name is None else change.name,
        tags=tuple(dict.fromkeys((*left_tags, *change.added))),
        note=before.note if change.note is None else change.note,
        starred=before.starred if change.starred is None else change.starred,
        archived=before.archived if change.archived is None else change.archived,
    )
