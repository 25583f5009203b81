"""The differences between experiments as lines. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from riseml.analysis.rows import Columns
from riseml.cli.output.style import Style, paint
from riseml.cli.output.tables import Column, build_table, measure_table
from riseml.cli.output.text import clean_text, count_noun, format_duration, format_metric, format_moment
from riseml.cli.output.widths import pad_to_width, shorten_to_width, wrap_to_width

if TYPE_CHECKING:
    from riseml import wire

_USUAL_WIDTH = 80  # columns, where the output is not a terminal
_LONG = 40  # characters; a longer value gets lines of its own
_MOST_FILES = 40  # the most files that are listed
_HEADS = (
    Column("ID"),
    Column("PROJECT", shrinks=True),
    Column("STATE", states=True),
    Column("STARTED", shrinks=True, spare=1),
    Column("TIME"),
)
_MISSING = "-"


def list_comparison(comparison: wire.ComparisonView, style: Style, *, every: bool = False) -> list[str]:
    """Return the experiments, then a section for each subject in which they differ.

    Args:
        comparison: the answer of the server.
        style: of the terminal.
        every: show all metrics, with their smallest and largest values; else the last values that differ.
    """
    names = [clean_text(experiment["id"]) for experiment in comparison["experiments"]]
    sections = [
        ("Parameters", _list_differences(comparison["parameters"], names, style)),
        ("riseml.yml, as resolved", _list_differences(comparison["config"], names, style)),
        ("Environment", _list_differences(comparison["environment"], names, style)),
        ("Metrics", _list_differences(_list_metrics(comparison["metrics"], every=every), names, style)),
        ("Code", [*_list_files(comparison["code"], names, style), *_describe_unknown(comparison["code_unknown"])]),
    ]
    lines = build_table(_HEADS, [_make_head_row(experiment) for experiment in comparison["experiments"]], style)
    for title, section in sections:
        if section:
            lines += ["", paint(title, "1", colour=style.colour), *section]
    same = [title.partition(",")[0] for title, section in sections if not section]
    return [*lines, "", f"The same: {', '.join(same)}."] if same else lines


def _make_head_row(experiment: wire.ComparedExperiment) -> list[str]:
    started = experiment["started_at"]
    seconds = experiment["seconds"]
    return [
        experiment["id"],
        experiment["project"],
        experiment["state"],
        format_moment(started) if started else _MISSING,
        format_duration(seconds),
    ]


def _list_differences(differences: Sequence[wire.Difference], names: Sequence[str], style: Style) -> list[str]:
    """Return short values as a table, and long ones below it, each with the ID of its experiment."""
    short = [difference for difference in differences if not _is_long(difference)]
    rows = [[difference["name"], *(value or _MISSING for value in difference["values"])] for difference in short]
    columns = [Column("", shrinks=True), *(Column(name) for name in names)]
    if measure_table(columns, rows) > (style.width or _USUAL_WIDTH):
        short = []
        rows = []
    long = [difference for difference in differences if difference not in short]
    table = build_table(columns, rows, style) if rows else []
    return [*table, *(line for difference in long for line in _list_long_values(difference, names, style))]


def _list_metrics(differences: Sequence[wire.MetricDifference], *, every: bool) -> list[wire.Difference]:
    """Return the rows of metrics: of each one that differs, its last value; `every`: all values of all metrics."""
    if every:
        return _flatten_metrics(differences)
    columns = Columns(frozenset(), frozenset(difference["name"] for difference in differences))
    rows: list[wire.Difference] = []
    for difference in differences:
        last = _format_values(metric and metric["last"] for metric in difference["metrics"])
        if len(set(last)) > 1:
            rows.append({"name": columns.name_metric(difference["name"]), "values": last})
    return rows


def _flatten_metrics(differences: Sequence[wire.MetricDifference]) -> list[wire.Difference]:
    """Return a row for the last value of each metric, and rows for its smallest and largest one where they differ.

    No two rows have one name, as no two columns of results: beside a metric `g.last`, the last value of `g` is
    `"g".last`.
    """
    rows: list[wire.Difference] = []
    columns = Columns(frozenset(), frozenset(difference["name"] for difference in differences))
    for difference in differences:
        titles = {part: columns.name_metric(difference["name"], part) for part in ("last", "min", "max")}
        last = _format_values(metric and metric["last"] for metric in difference["metrics"])
        least = _format_values(metric and metric["min"] for metric in difference["metrics"])
        most = _format_values(metric and metric["max"] for metric in difference["metrics"])
        rows.append({"name": titles["last"], "values": last})
        rows += [{"name": titles["min"], "values": least}] if least != last else []
        rows += [{"name": titles["max"], "values": most}] if most != last else []
    return rows


def _format_values(values: Iterable[float | str | None]) -> list[str | None]:
    return [None if value is None else format_metric(value) for value in values]


def _is_long(difference: wire.Difference) -> bool:
    return any(value is not None and (len(value) > _LONG or "\n" in value) for value in difference["values"])


def _list_long_values(difference: wire.Difference, names: Sequence[str], style: Style) -> Iterator[str]:
    yield f"{clean_text(difference['name'])}:"
    label = max(len(name) for name in names) + 4
    room = max(20, (style.width or _USUAL_WIDTH) - label)
    for name, value in zip(names, difference["values"], strict=True):
        texts = [_MISSING] if value is None else [clean_text(line) for line in value.split("\n")]
        lines = [part for text in texts for part in wrap_to_width(text, room)]
        for at, line in enumerate(lines):
            yield f"{pad_to_width(f'  {name}' if at == 0 else '', label)}{line}".rstrip()


def _list_files(files: Sequence[wire.FileDifference], names: Sequence[str], style: Style) -> list[str]:
    """Return the files that differ: of two experiments with what happened to each, else with their digests."""
    first = files[:_MOST_FILES]
    if not first:
        return []
    if len(names) == 2:
        width = (style.width or _USUAL_WIDTH) - 10
        lines = [f"{_describe_change(file):8}  {shorten_to_width(clean_text(file['path']), width)}" for file in first]
    else:
        rows = [[file["path"], *((version or _MISSING)[:7] for version in file["versions"])] for file in first]
        lines = build_table([Column("", shrinks=True), *(Column(name) for name in names)], rows, style)
    more = len(files) - len(first)
    return [*lines, f"... and {count_noun(more, 'more file')}; `--json` has them all"] if more > 0 else lines


def _describe_change(difference: wire.FileDifference) -> str:
    before, after = difference["versions"]
    if before is None:
        return "added"
    return "removed" if after is None else "changed"


def _describe_unknown(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    return [clean_text(f"not compared: the project's files of {', '.join(names)} are not on the server any more")]
