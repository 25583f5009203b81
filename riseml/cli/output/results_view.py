"""Results of experiments as a table, as CSV, or as a table for a paper. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from riseml.analysis.column_names import quote_name, split_exact
from riseml.analysis.csv_table import list_csv_lines
from riseml.analysis.result_answers import has_generations, list_all_names, list_objectives, make_columns, make_row
from riseml.analysis.rows import FIXED, Columns, ResultRow, Value
from riseml.base.records import dataclass
from riseml.cli.output.paper_table import PaperTable
from riseml.cli.output.style import Style
from riseml.cli.output.tables import Column, build_table, measure_table
from riseml.cli.output.text import clean_text, count_noun, format_duration, format_metric, format_parameters
from riseml.spec.config.types import SEED, Goal

if TYPE_CHECKING:
    from riseml import wire

_BEST = "*"
_MOST_COLUMNS = 8  # the most parameters, and the most metrics, with columns of their own
_NARROWEST = 8  # columns of a terminal that a shortened column keeps
_LONGEST_SAME = 200  # characters
_DIGITS = 6  # of a metric
_BEST_PARTS = {Goal.MAXIMIZE: "max", Goal.MINIMIZE: "min"}


@dataclass(frozen=True, slots=True)
class _Entry:
    """One experiment in both of its forms."""

    view: wire.ResultView
    row: ResultRow


@dataclass(frozen=True, slots=True)
class _Field:
    """One column and how it reads an experiment."""

    column: Column
    read: Callable[[_Entry], Value]
    ranks: bool = False  # by this column the experiments are ranked

    def show(self, entry: _Entry, digits: int | None = None) -> str:
        """Return the text of a cell."""
        return format_metric(self.read(entry), digits or _DIGITS)


@dataclass(frozen=True, slots=True)
class _Fitted:
    """The columns of a table that fits the terminal."""

    fields: list[_Field]
    left_out: Sequence[str] = ()  # titles of columns for which the terminal has no room
    same: Sequence[tuple[str, str]] = ()  # titles and cells of columns that are left out because all rows have them


def list_results(
    results: wire.ResultList,
    style: Style,
    chosen: Sequence[str] = (),
    digits: int | None = None,
    *,
    every: bool = False,
) -> list[str]:
    """Return the table with the best row marked, then the values that all rows share, and what is left out.

    Args:
        results: the answer of the server.
        style: of the terminal.
        chosen: names of the columns; empty: the usual ones, as many as the terminal has room for.
        digits: of a metric; None: six.
        every: all columns for which the terminal has room, also where all rows are the same.

    Raises:
        UsageError: there is no such column.
    """
    if not results["experiments"]:
        left_out = _list_omissions(results) if results.get("archived") else ()
        return [f"None of {count_noun(results['total'], 'experiment')} meets the conditions.", *left_out]
    entries = [_Entry(experiment, make_row(experiment)) for experiment in results["experiments"]]
    fitted = _Fitted(_choose_fields(results, chosen)) if chosen else _fit_fields(results, entries, style, every=every)
    fields = fitted.fields
    cells = [[field.show(entry, digits) for field in fields] for entry in entries]
    columns = [field.column for field in fields]
    if results["best"]:
        best = results["best"]["id"]
        columns = [Column(""), *columns]
        cells = [[_BEST if entry.view["id"] == best else "", *row] for entry, row in zip(entries, cells, strict=True)]
    return [*build_table(columns, cells, style), *_list_notes(results, fitted)]


def _list_notes(results: wire.ResultList, fitted: _Fitted) -> list[str]:
    notes = []
    objective = results["objective"]
    best = results["best"]
    if objective and best:
        notes.append(f"* {describe_best(best, objective)}: {objective['words']}")
        if SEED in results["parameters"]:
            notes.append("One run may have a lucky seed: --group ranks points by their means over seeds")
    elif len(list_objectives(results)) > 1:
        notes += _describe_front(results)
        if SEED in results["parameters"]:
            notes.append("One run may have a lucky seed: `riseml status` names the front of the means over seeds")
    elif results["metrics"] and not objective:
        metric = results["metrics"][0]
        column = make_columns(results).write_metric(metric)
        name_text = metric if metric.replace("/", "").isidentifier() else quote_name(metric)
        notes.append(
            f"Nothing is ranked: --sort -{column} puts the largest {metric} first and marks the best, --sort {column} "
            f"the smallest. In riseml.yml: `search: {{method: grid, metric: {name_text}, goal: maximize}}`, or minimize"
        )
    notes += _describe_same(results, fitted)
    if fitted.left_out:
        notes.append(f"Too narrow for {', '.join(fitted.left_out)}: a wider terminal, --columns or --csv shows them")
    notes += [*_list_omissions(results), *(f"Note: {note}" for note in results["notes"])]
    return ["", *map(clean_text, notes)] if notes else []


def _list_omissions(results: wire.ResultList) -> Iterator[str]:
    """Yield a sentence for each kind of experiments that the table lacks."""
    more = results["matched"] - len(results["experiments"])
    if more > 0:
        yield f"... and {more:,} more; `-n 0` shows all, and so do --csv and --json"
    if results.get("archived"):  # a server of an earlier version has no such key
        yield f"Left out: {count_noun(results['archived'], 'archived experiment')}; --archived shows them"
    left = results["total"] - results["matched"]
    if left > 0:
        yield f"Left out by the conditions: {left:,} of {count_noun(results['total'], 'experiment')}"


def _describe_same(results: wire.ResultList, fitted: _Fitted) -> list[str]:
    """Return the line with the values that all rows have alike; nothing without one."""
    cells = {_write_title(title): cell for title, cell in fitted.same if cell != "-"}
    same = format_parameters({**results["same"], **cells})
    if not same:
        return []
    return [f"All have {same if len(same) <= _LONGEST_SAME else f'{same[:_LONGEST_SAME]}...'}"]


def _write_title(title: str) -> str:
    """Return the name of a column, as conditions have it: `state` of STATE."""
    return title.lower() if title.lower() in FIXED else title


def _describe_front(results: wire.ResultList) -> list[str]:
    """Return the sentence about the experiments of the first front; nothing without one."""
    front = [result["id"] for result in results["experiments"] if result["rank"] == 1]
    words = {"maximize": "larger", "minimize": "smaller"}
    goals = " and ".join(f"{named['metric']} ({words[named['goal']]})" for named in list_objectives(results))
    if not front:
        return []
    return [f"RANK 1 is the Pareto front: no other experiment beats {', '.join(front)} in {goals}"]


def describe_best(best: wire.ResultView, objective: wire.ObjectiveView) -> str:
    """Return `144.3 accuracy 0.981 (lr=0.01)`."""
    parameters = f" ({format_parameters(best['parameters'])})" if best["parameters"] else ""
    return f"{best['id']} {objective['metric']} {format_metric(best['value'])}{parameters}"


def _fit_fields(results: wire.ResultList, entries: Sequence[_Entry], style: Style, *, every: bool) -> _Fitted:
    """Return the usual columns, or fewer where there is little room.

    The parameters always stay, because they distinguish the experiments; at last they share one column.
    """
    heads = [*_list_heads(results, ranked=bool(list_objectives(results))), *_list_said(entries)]
    parameters = _list_parameters(results, together=False)
    metrics = _list_metrics(results, last=False, every=every)
    ends = _list_ends()
    state, time, host = ends
    same = {} if every else _find_same([*metrics, state, host], entries)
    fields = [field for field in (*heads, *parameters, *metrics, *ends) if field.column.title not in same]
    less_wanted = [host, *metrics[:0:-1], time]
    left_out: list[str] = []
    for spare in (field for field in less_wanted if field in fields):
        if _fits(fields, entries, style):
            return _Fitted(fields, left_out, list(same.items()))
        fields = [field for field in fields if field is not spare]
        left_out.append(spare.column.title)
    if not _fits(fields, entries, style):
        ends = [field for field in (*metrics[:1], state) if field in fields]
        fields = [*heads, *_list_parameters(results, together=True), *ends]
    while len(fields) > len(heads) + 1 and not _fits(fields, entries, style):
        left_out.append(fields.pop().column.title)
    return _Fitted(fields, left_out, list(same.items()))


def _find_same(fields: Sequence[_Field], entries: Sequence[_Entry]) -> dict[str, str]:
    """Return the cells of columns in which several rows are all the same, by title; never of what ranks."""
    same: dict[str, str] = {}
    for field in fields:
        cells = {field.show(entry) for entry in entries}
        if len(entries) > 1 and len(cells) == 1 and not field.ranks:
            same[field.column.title] = cells.pop()
    return same


def _fits(fields: Sequence[_Field], entries: Sequence[_Entry], style: Style) -> bool:
    return style.width is None or _measure_least(fields, entries) <= style.width


def _measure_least(fields: Sequence[_Field], entries: Sequence[_Entry]) -> int:
    """Return the fewest terminal columns that a table needs, including the mark of the best row."""
    rows = [
        [cell[:_NARROWEST] if _is_flexible(field.column) else cell for field in fields for cell in [field.show(entry)]]
        for entry in entries
    ]
    return measure_table([field.column for field in fields], rows) + len(_BEST) + 2


def _is_flexible(column: Column) -> bool:
    return column.shrinks or column.folds


def _list_heads(results: wire.ResultList, *, ranked: bool) -> list[_Field]:
    rank = _Field(Column("RANK", right=True), lambda entry: entry.view["rank"])
    lineage = [
        _Field(Column("GENERATION", right=True), lambda entry: entry.view.get("generation")),
        _Field(Column("PARENT"), lambda entry: entry.view.get("parent")),
    ]
    fields = [*([rank] if ranked else []), _Field(Column("ID"), lambda entry: entry.view["id"])]
    return [*fields, *lineage] if has_generations(results) else fields


def _list_said(entries: Sequence[_Entry]) -> list[_Field]:
    """Return the columns of what users say, where that is not the same of all experiments."""
    names = ("name", "tags", "marks")
    fields = [_Field(Column(name.upper(), shrinks=True), partial(_read_fixed, name)) for name in names]
    return [field for field in fields if len({field.read(entry) for entry in entries}) > 1]


def _read_fixed(name: str, entry: _Entry) -> Value:
    return FIXED[name](entry.row)


def _list_parameters(results: wire.ResultList, *, together: bool) -> list[_Field]:
    names = results["parameters"]
    if not names:
        return []
    if together or len(names) > _MOST_COLUMNS:
        return [_Field(Column("PARAMS", folds=True), lambda entry: _join_parameters(entry.view, names))]
    titles = map(make_columns(results).name_parameter, names)
    return [
        _Field(Column(clean_text(title), right=True), _parameter_reader(name))
        for name, title in zip(names, titles, strict=True)
    ]


def _join_parameters(result: wire.ResultView, names: Iterable[str]) -> str:
    return format_parameters({name: result["parameters"][name] for name in names if name in result["parameters"]})


def _parameter_reader(name: str) -> Callable[[_Entry], str | None]:
    return lambda entry: entry.view["parameters"].get(name)


def _list_metrics(results: wire.ResultList, *, last: bool, every: bool = False) -> list[_Field]:
    """Return the objective with its best value, then the last value of the others.

    Args:
        results: the answer of the server.
        last: with the last value of the objective, too.
        every: with the smallest and largest value of each metric, too, however many there are.
    """
    columns = make_columns(results)
    ranking = [objective["metric"] for objective in list_objectives(results)]
    first = [name for name in ranking if name in results["metrics"]]
    further = [name for name in results["metrics"] if name not in first]
    names = [columns.name_metric(name) for name in first]
    names += [columns.name_metric(name, "last") for name in first] if last or every else []
    names += [columns.name_metric(name) for name in further]
    if not every:
        return [_make_field(name, columns) for name in names[:_MOST_COLUMNS]]
    names += [columns.name_metric(name, part) for name in (*first, *further) for part in ("min", "max")]
    return [_make_field(name, columns) for name in names]


def _list_ends() -> list[_Field]:
    return [
        _Field(Column("STATE", states=True), lambda entry: FIXED["state"](entry.row)),
        _Field(Column("TIME", right=True), lambda entry: format_duration(entry.row.seconds)),
        _Field(Column("HOST", shrinks=True), lambda entry: FIXED["host"](entry.row)),
    ]


def _choose_fields(results: wire.ResultList, chosen: Sequence[str]) -> list[_Field]:
    columns = make_columns(results)
    fields = {field.column.title.lower(): field for field in (*_list_heads(results, ranked=True), *_list_ends())}
    return [fields[name] if name in fields else _make_field(name, columns) for name in chosen]


def _make_field(name: str, columns: Columns) -> _Field:
    reader = columns.find_reader(name)
    right = not (name in columns.parameters or name in ("id", "parent", "reason", "name", "tags", "marks", "note"))
    kind, metric, part = columns.resolve(name)
    if name == "note":
        return _Field(Column(name, folds=True), lambda entry: _join_lines(reader(entry.row)))
    ranks = kind == "metrics" and metric in columns.goals and part in ("", "best", _BEST_PARTS[columns.goals[metric]])
    return _Field(Column(clean_text(_title(name, columns)), right=right), lambda entry: reader(entry.row), ranks)


def _title(name: str, columns: Columns) -> str:
    """Return a name in quotes without them, where it still means the same: `val loss.max` of `"val loss".max`."""
    meaning = columns.resolve(name)
    plain = ".".join(filter(None, meaning[1:]))
    return plain if split_exact(name) is not None and columns.resolve(plain) == meaning else name


def _join_lines(value: Value) -> Value:
    """Return a text in one line, for a cell of a table; CSV and JSON keep its line breaks."""
    return " ".join(value.split()) if isinstance(value, str) else value


def list_csv(results: wire.ResultList, chosen: Sequence[str] = ()) -> list[str]:
    """Return the results as lines of CSV, the names of the columns first; numbers have all their digits.

    Raises:
        UsageError: there is no such column.
    """
    columns = make_columns(results)
    names = list(chosen) or list_all_names(results, columns)
    readers = [None if name == "rank" else columns.find_reader(name) for name in names]
    entries = [_Entry(experiment, make_row(experiment)) for experiment in results["experiments"]]
    return list_csv_lines(
        [_title(name, columns) for name in names],
        ([entry.view["rank"] if read is None else read(entry.row) for read in readers] for entry in entries),
    )


def make_paper_table(results: wire.ResultList, chosen: Sequence[str] = (), digits: int | None = None) -> PaperTable:
    """Return the results for a paper, the best value of the metric that ranks them in bold.

    Raises:
        UsageError: there is no such column.
    """
    metrics = _list_metrics(results, last=True)
    usual = [*_list_heads(results, ranked=bool(list_objectives(results))), *_list_parameters(results, together=False)]
    fields = _choose_fields(results, chosen) if chosen else [*usual, *metrics, *_list_ends()]
    entries = [_Entry(experiment, make_row(experiment)) for experiment in results["experiments"]]
    bold = [
        (at, place)
        for at, entry in enumerate(entries)
        for place, field in enumerate(fields)
        if field.ranks and entry.view["rank"] == 1
    ]
    rows = [[field.read(entry) for field in fields] for entry in entries]
    return PaperTable([field.column.title for field in fields], rows, frozenset(bold), digits)
