"""A table of experiments with the columns, the order and the groups that a user wants: a page of it, or all as CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from riseml import wire
from riseml.analysis.csv_table import Cell, list_csv_lines
from riseml.analysis.rows import Columns, Reader, Value
from riseml.analysis.table_lines import GroupCell, Line, list_lines, summarize
from riseml.base.errors import UsageError
from riseml.base.records import dataclass
from riseml.base.states import TERMINAL, State
from riseml.model import Caller, SearchRecord
from riseml.server.api.views.live_lines import LiveWords, describe_running, roll_up_group
from riseml.server.api.views.metric_views import show_number
from riseml.server.api.views.objective_view import show_objective
from riseml.server.api.views.record_views import may_change_record
from riseml.server.api.views.results import RUN_COLUMNS, MatchedRows, ResultQuery, complete_rows, match_rows
from riseml.server.api.views.search_view import describe_search
from riseml.server.api.views.table_columns import LIVE, UsualTable, choose_usual, list_available
from riseml.server.reconcile.progress_tracker import ProgressTracker
from riseml.server.services import Stores

_OF_SET = ("set",)  # how the lines of sets are grouped
_NO_SEARCHES: Mapping[int, SearchRecord] = MappingProxyType({})
_NO_WORDS = LiveWords()


@dataclass(frozen=True, slots=True)
class TableQuery:
    """A part of a table, as the user wants it."""

    results: ResultQuery  # which experiments, in which order
    columns: tuple[str, ...] = ()  # empty: none, or with `available` the usual ones
    group: tuple[str, ...] = ()  # columns by which the experiments are grouped; empty: they are not
    opened: tuple[str, ...] = ()  # the groups whose experiments follow
    offset: int = 0  # lines before the page
    limit: int = 200  # lines of the page
    available: bool = False  # whether to list the columns that there are
    first: tuple[str, ...] = ()  # those of the columns that come first


def read_table(
    query: TableQuery, caller: Caller, stores: Stores, moment: datetime, tracker: ProgressTracker | None = None
) -> wire.TableView:
    """Return a page of a table. `tracker`: knows how far jobs are; None: the table does not say it.

    Raises:
        NotFound: there is no such experiment.
        UsageError: a condition, the order or a group is wrong.
    """
    matched = match_rows(query.results, caller, stores, moment)
    available = list_available(matched.rows, matched.columns, matched.ranks) if query.available else []
    usual = UsualTable(tuple(objective.metric for objective in matched.objectives), bool(query.results.names))
    columns = query.columns or (choose_usual(available, usual) if query.available else ())
    columns = sorted(columns, key=lambda name: name not in query.first)
    lines = _list_lines(query, matched)
    page = lines[query.offset : query.offset + query.limit]
    page = _complete(page, matched, stores) if query.group == _OF_SET or set(columns) & {*RUN_COLUMNS} else page
    readers = [_find_reader(name, matched) for name in columns]
    unknown = [name for name, read in zip(columns, readers, strict=True) if read is None and name not in LIVE]
    searches = _load_searches(query, page, matched, stores)
    shower = _PageShower(columns, readers, matched, query.group == _OF_SET, searches)
    words = {} if tracker is None else _list_words(columns, page, matched, stores, tracker)
    return {
        "objectives": [show_objective(objective) for objective in matched.objectives],
        "total": matched.total,
        "archived": matched.sources.hidden,
        "matched": len(matched.rows),
        "lines": len(lines),
        "columns": columns,
        "available": available,
        "rows": [shower.show(caller, line, words.get(line.rows[0].name, _NO_WORDS)) for line in page],
        "notes": [*matched.notes, *(_describe_unknown(name, matched.columns) for name in unknown)],
    }


def list_table_csv(query: TableQuery, caller: Caller, stores: Stores, moment: datetime) -> list[str]:
    """Return all lines of a table as CSV, whatever the page is: numbers have all their digits, and groups a count.

    Raises:
        NotFound: there is no such experiment.
        UsageError: a condition, the order or a group is wrong.
    """
    matched = match_rows(query.results, caller, stores, moment)
    lines = _complete(_list_lines(query, matched), matched, stores)
    columns = [name for name in query.columns if name not in LIVE or matched.columns.resolve(name)[0]]
    readers = [_find_reader(name, matched) for name in columns]
    counts = ["experiments"] if query.group else []
    return list_csv_lines(
        [*columns, *counts],
        (
            [*(cell.value for cell in _list_cells(line, columns, readers)), *([_count(line)] if query.group else [])]
            for line in lines
        ),
    )


def _list_lines(query: TableQuery, matched: MatchedRows) -> list[Line]:
    groups = {name: matched.columns.find_reader(name) for name in query.group}
    return list_lines(matched.rows, groups, frozenset(query.opened))


def _complete(lines: Sequence[Line], matched: MatchedRows, stores: Stores) -> list[Line]:
    """Return lines whose rows have when and where they ran."""
    rows = {row.name: row for line in lines for row in line.rows}
    completed = {row.name: row for row in complete_rows(list(rows.values()), matched, stores)}
    return [line._replace(rows=tuple(completed[row.name] for row in line.rows)) for line in lines]


def _find_reader(name: str, matched: MatchedRows) -> Reader | None:
    """Return what reads a column; None: no experiment has it. A view that is saved may name what is not there yet."""
    if name == "rank":
        return lambda row: None if (rank := matched.ranks.get(row.name)) is None else float(rank)
    try:
        return matched.columns.find_reader(name)
    except UsageError:
        return None


def _describe_unknown(name: str, columns: Columns) -> str:
    try:
        columns.find_reader(name)
    except UsageError as error:
        return f"{error.message}: {error.hint}" if error.hint else error.message
    return ""


def _load_searches(
    query: TableQuery, page: Sequence[Line], matched: MatchedRows, stores: Stores
) -> Mapping[int, SearchRecord]:
    """Return the searches whose sets are lines of a page, by the keys of the sets."""
    if query.group != _OF_SET:
        return _NO_SEARCHES
    outcomes = (matched.sources.outcomes[line.rows[0].name] for line in page if line.group)
    return stores.searches.load_searches({outcome.set_id for outcome in outcomes if outcome.set_id is not None})


def _list_words(
    columns: Sequence[str], page: Sequence[Line], matched: MatchedRows, stores: Stores, tracker: ProgressTracker
) -> Mapping[str, LiveWords]:
    """Return what is said of the experiments of a page that run, by their names."""
    if not {"state", *LIVE} & set(columns):
        return {}
    running = [line.rows[0].name for line in page if not line.group and line.rows[0].state == State.RUNNING.value]
    return {name: describe_running(matched.sources.outcomes[name].id, stores, tracker) for name in running}


@dataclass(frozen=True, slots=True)
class _PageShower:
    """Shows lines as an answer has them."""

    columns: Sequence[str]
    readers: Sequence[Reader | None]
    matched: MatchedRows
    of_sets: bool  # groups are sets
    searches: Mapping[int, SearchRecord]  # by the keys of sets; empty: no line is a set

    def show(self, caller: Caller, line: Line, words: LiveWords) -> wire.TableLine:
        cells = list(_list_cells(line, self.columns, self.readers))
        outcomes = [self.matched.sources.outcomes[row.name] for row in line.rows]
        first = outcomes[0]
        search = self.searches.get(first.set_id or 0) if line.group else None
        return {
            "id": "" if line.group else line.rows[0].name,
            "group": line.group,
            "count": len(line.rows),
            "ended": sum(outcome.state in TERMINAL for outcome in outcomes),
            "open": line.is_open,
            "inside": line.is_inside,
            "user": first.user,
            "team_project": first.team_project,
            "may_change": all(
                may_change_record(caller, user, project)
                for user, project in {(outcome.user, outcome.team_project) for outcome in outcomes}
            ),
            "state": self._find_state(line, search),
            "progress": words.progress,
            "latest": words.latest if search is None else describe_search(search, (), caller.user),
            "cells": [_show_value(cell.value) for cell in cells],
            "mixed": [place for place, cell in enumerate(cells) if cell.is_mixed],
        }

    def _find_state(self, line: Line, search: SearchRecord | None) -> wire.StateName | None:
        """Return the state of a line: of a set what its members are together; None: that of a group is mixed."""
        outcomes = [self.matched.sources.outcomes[row.name] for row in line.rows]
        states = {outcome.state for outcome in outcomes}
        if line.group and self.of_sets:
            started = {outcome.id: row.started for outcome, row in zip(outcomes, line.rows, strict=True)}
            return roll_up_group(outcomes, started, search).value
        return outcomes[0].state.value if len(states) == 1 else None


def _list_cells(line: Line, columns: Sequence[str], readers: Sequence[Reader | None]) -> Iterator[GroupCell]:
    for name, read in zip(columns, readers, strict=True):
        if read is None:
            yield GroupCell(None)
        elif line.group:
            yield summarize(line.rows, read, name)
        else:
            yield GroupCell(read(line.rows[0]))


def _show_value(value: Value) -> str | float | None:
    return show_number(value) if isinstance(value, float) else value


def _count(line: Line) -> Cell:
    return float(len(line.rows)) if line.group else None
