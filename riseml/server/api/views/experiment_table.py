"""A table of experiments with the columns, the order and the groups that a user wants: a page of it, or all as CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from riseml import wire
from riseml.analysis.csv_table import Cell, list_csv_lines
from riseml.analysis.rows import FIXED, PARTS, Columns, Reader, ResultRow, Value, list_metrics, list_parameters
from riseml.analysis.table_lines import GroupCell, Line, list_lines, summarize
from riseml.base.errors import UsageError
from riseml.base.records import dataclass
from riseml.base.states import State
from riseml.model import Caller
from riseml.server.api.views.metric_views import show_number
from riseml.server.api.views.objective_view import show_objective
from riseml.server.api.views.results import RUN_COLUMNS, MatchedRows, ResultQuery, complete_rows, match_rows
from riseml.server.services import Stores


@dataclass(frozen=True, slots=True)
class TableQuery:
    """A part of a table, as the user wants it."""

    results: ResultQuery  # which experiments, in which order
    columns: tuple[str, ...] = ()
    group: tuple[str, ...] = ()  # columns by which the experiments are grouped; empty: they are not
    opened: tuple[str, ...] = ()  # the groups whose experiments follow
    offset: int = 0  # lines before the page
    limit: int = 200  # lines of the page
    available: bool = False  # whether to list the columns that there are


def read_table(query: TableQuery, caller: Caller, stores: Stores, moment: datetime) -> wire.TableView:
    """Return a page of a table.

    Raises:
        NotFound: there is no such experiment.
        UsageError: a condition, the order or a group is wrong.
    """
    matched = match_rows(query.results, caller, stores, moment)
    lines = _list_lines(query, matched)
    page = lines[query.offset : query.offset + query.limit]
    page = _complete(page, matched, stores) if set(query.columns) & {*RUN_COLUMNS} else page
    readers = [_find_reader(name, matched) for name in query.columns]
    unknown = [name for name, read in zip(query.columns, readers, strict=True) if read is None]
    return {
        "objectives": [show_objective(objective) for objective in matched.objectives],
        "total": matched.total,
        "archived": matched.sources.hidden,
        "matched": len(matched.rows),
        "lines": len(lines),
        "columns": list(query.columns),
        "available": list(_list_available(matched)) if query.available else [],
        "rows": [_show_line(line, readers) for line in page],
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
    readers = [_find_reader(name, matched) for name in query.columns]
    counts = ["experiments"] if query.group else []
    return list_csv_lines(
        [*query.columns, *counts],
        (
            [*(cell.value for cell in _list_cells(line, readers)), *([_count(line)] if query.group else [])]
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


def _show_line(line: Line, readers: Sequence[Reader | None]) -> wire.TableLine:
    cells = list(_list_cells(line, readers))
    first = line.rows[0]
    is_one_state = all(row.state == first.state for row in line.rows)
    return {
        "id": "" if line.group else first.name,
        "group": line.group,
        "count": len(line.rows),
        "open": line.is_open,
        "inside": line.is_inside,
        "state": State(first.state).value if is_one_state else None,
        "cells": [_show_value(cell.value) for cell in cells],
        "mixed": [place for place, cell in enumerate(cells) if cell.is_mixed],
    }


def _list_cells(line: Line, readers: Sequence[Reader | None]) -> Iterator[GroupCell]:
    for read in readers:
        if read is None:
            yield GroupCell(None)
        elif line.group:
            yield summarize(line.rows, read)
        else:
            yield GroupCell(read(line.rows[0]))


def _show_value(value: Value) -> str | float | None:
    return show_number(value) if isinstance(value, float) else value


def _count(line: Line) -> Cell:
    return float(len(line.rows)) if line.group else None


def _list_available(matched: MatchedRows) -> Iterator[wire.TableColumn]:
    """Yield every column that the table can have."""
    rows = matched.rows
    columns = matched.columns
    yield {"name": "rank", "kind": "own", "part": "", "differs": len(set(matched.ranks.values())) > 1}
    for name, read in FIXED.items():
        yield {"name": name, "kind": "own", "part": "", "differs": name in RUN_COLUMNS or _differs(rows, read)}
    for name in list_parameters(rows):
        column = columns.write_parameter(name)
        differs = _differs(rows, columns.find_reader(column))
        yield {"name": column, "kind": "parameters", "part": "", "differs": differs}
    for metric in list_metrics(rows):
        for part in ("", *(part for part in PARTS if part != "best" or metric in columns.goals)):
            column = columns.write_metric(metric, part)
            differs = _differs(rows, columns.find_reader(column))
            yield {"name": column, "kind": "metrics", "part": part, "differs": differs}


def _differs(rows: Sequence[ResultRow], read: Reader) -> bool:
    """Return True when two rows have different values; most columns show it in their first rows."""
    values = map(read, rows)
    first = next(values, None)
    return any(value != first for value in values)
