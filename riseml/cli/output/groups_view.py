"""Groups of runs that differ in their seed alone, as a table or as CSV, and the comparison of two. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from riseml.analysis.csv_table import list_csv_lines
from riseml.cli.output.paper_table import PaperTable
from riseml.cli.output.style import Style
from riseml.cli.output.tables import Column, build_table
from riseml.cli.output.text import clean_text, count_noun, format_metric, format_parameters

if TYPE_CHECKING:
    from riseml import wire
    from riseml.analysis.group_comparison import GroupComparison

_MISSING = "-"
_DIGITS = 6  # of a number in a table
_NUMBERS = ("mean", "deviation", "low", "high")
_TESTS = {
    "paired": "by a paired t-test: both ran with the same seeds",
    "welch": "by Welch's t-test: their seeds are not the same",
}


def list_groups(groups: wire.GroupList, style: Style, most: int | None = None, digits: int | None = None) -> list[str]:
    """Return a row for each point: rank, runs, parameters, and the statistics of its runs.

    Args:
        groups: the answer of the server.
        style: of the terminal.
        most: rows; None: all.
        digits: of each number; None: six.
    """
    if not groups["groups"]:
        return [f"None of {count_noun(groups['total'], 'experiment')} meets the conditions."]
    ranked = groups["objective"] is not None
    names = groups["parameters"]
    columns = [
        *([Column(""), Column("RANK", right=True)] if ranked else []),
        Column("RUNS"),
        *(Column(clean_text(name), right=True) for name in names),
        *(Column(title, right=True) for title in ("N", f"MEAN {clean_text(groups['column'])}", "SD", "95% INTERVAL")),
        Column("LEFT OUT", shrinks=True),
    ]
    listed = groups["groups"][:most]
    cells = [
        [*(_read_rank(group) if ranked else []), *_read_group(group, names, digits or _DIGITS)] for group in listed
    ]
    if all(row[-1] == _MISSING for row in cells):  # nothing is left out
        columns = columns[:-1]
        cells = [row[:-1] for row in cells]
    return [*build_table(columns, cells, style), "", *_list_notes(groups, len(listed))]


def _read_rank(group: wire.GroupView) -> list[str]:
    rank = group["rank"]
    return ["*" if rank == 1 else "", _MISSING if rank is None else str(rank)]


def _read_group(group: wire.GroupView, names: list[str], digits: int) -> list[str]:
    return [
        name_runs(group),
        *(group["parameters"].get(name, _MISSING) for name in names),
        str(group["n"]),
        format_metric(group["mean"], digits),
        format_metric(group["deviation"], digits),
        show_interval(group["low"], group["high"], digits),
        _explain_left_out(group),
    ]


def name_runs(group: wire.GroupView) -> str:
    """Return `144.1 to 144.5`, or all names where they do not follow each other."""
    ids = group["ids"]
    heads = {name.rpartition(".")[0] for name in ids}
    subs = [int(sub) for name in ids if (sub := name.rpartition(".")[2]).isdecimal()]
    if len(ids) > 2 and len(heads) == 1 and subs == list(range(subs[0], subs[0] + len(ids))):
        return f"{ids[0]} to {ids[-1]}"
    return ",".join(ids)


def show_interval(low: float | None, high: float | None, digits: int = _DIGITS) -> str:
    """Return `0.91 to 0.94`; `-` where there is none."""
    if low is None or high is None:
        return _MISSING
    return f"{format_metric(low, digits)} to {format_metric(high, digits)}"


def _explain_left_out(group: wire.GroupView) -> str:
    parts = [
        *([f"{group['failed']} without a value"] if group["failed"] else []),
        *([f"{group['unfinished']} not finished"] if group["unfinished"] else []),
        *(["stopped early"] if group["stopped"] else []),
        *([f"{group['beyond']} beyond the constraints"] if group["beyond"] else []),
    ]
    return ", ".join(parts) or _MISSING


def _list_notes(groups: wire.GroupList, count: int) -> list[str]:
    notes = []
    best = next((group for group in groups["groups"] if group["rank"] == 1), None)
    objective = groups["objective"]
    if best is not None and objective is not None:
        notes.append(f"* {_name_point(best)}: the best mean over seeds, where {objective['words']} is best")
    lucky = groups["best_run"]
    if lucky is not None and any(group["n"] > 1 for group in groups["groups"]):
        seed = "" if lucky["seed"] is None else f", seed {lucky['seed']}"
        notes.append(f"The luckiest single run: {lucky['id']} {format_metric(lucky['value'])}{seed}")
    notes.append(
        "SD: with n - 1. Interval: of the mean, by bootstrap; too narrow where n is small (`riseml docs results`)"
    )
    if groups["same"]:
        notes.append(f"All have {format_parameters(groups['same'])}")
    more = len(groups["groups"]) - count
    if more > 0:
        notes.append(f"... and {more:,} more; `-n 0` shows all, and so do --csv and --json")
    return [clean_text(note) for note in notes]


def _name_point(group: wire.GroupView) -> str:
    parameters = format_parameters(group["parameters"])
    return f"{name_runs(group)}{f' ({parameters})' if parameters else ''}"


def list_group_csv(groups: wire.GroupList) -> list[str]:
    """Return the groups as lines of CSV, the names of the columns first; numbers have all their digits."""
    names = [*groups["same"], *groups["parameters"]]
    titles = ["rank", "runs", *(f"parameters.{name}" for name in names), "n", *_NUMBERS]
    rows = (
        [
            *(group["rank"], " ".join(group["ids"])),
            *(group["parameters"].get(name) for name in names),
            *(group["n"], group["mean"], group["deviation"], group["low"], group["high"]),
            *(group["failed"], group["stopped"], group["unfinished"], group["beyond"]),
        ]
        for group in groups["groups"]
    )
    return list_csv_lines([*titles, "failed", "stopped", "unfinished", "beyond"], rows)


def make_group_table(groups: wire.GroupList, digits: int | None = None) -> PaperTable:
    """Return the groups for a paper: n, mean, deviation and interval of each point, the best mean in bold."""
    names = groups["parameters"]
    titles = [*names, "n", f"mean {groups['column']}", "SD", "95% low", "95% high"]
    rows = [
        [
            *(group["parameters"].get(name) for name in names),
            *(group["n"], group["mean"], group["deviation"], group["low"], group["high"]),
        ]
        for group in groups["groups"]
    ]
    best = [at for at, group in enumerate(groups["groups"]) if group["rank"] == 1]
    return PaperTable(titles, rows, frozenset((at, len(names) + 1) for at in best), digits)


def list_comparison(
    pair: tuple[wire.GroupView, wire.GroupView], comparison: GroupComparison, column: str, style: Style
) -> list[str]:
    """Return both groups side by side, and what a test says of them."""
    rows = [
        ["runs", *map(name_runs, pair)],
        ["parameters", *(format_parameters(group["parameters"]) or _MISSING for group in pair)],
        ["n", *(str(group["n"]) for group in pair)],
        [f"mean {column}", *(format_metric(group["mean"]) for group in pair)],
        ["SD", *(format_metric(group["deviation"]) for group in pair)],
        ["95% interval", *(show_interval(group["low"], group["high"]) for group in pair)],
    ]
    table = build_table([Column(""), Column("FIRST", shrinks=True), Column("SECOND", shrinks=True)], rows, style)
    lines = [f"{comparison.verdict[:1].upper()}{comparison.verdict[1:]}"]
    result = comparison.result
    if result is not None:
        interval = show_interval(result.low, result.high)
        difference = f"{pair[1]['ids'][0]} less {pair[0]['ids'][0]}: {format_metric(result.difference)}"
        lines += [f"{difference}, 95% interval {interval}, {_TESTS[comparison.test]}"]
    return [*table, "", *map(clean_text, [*lines, *comparison.notes])]


def show_comparison(
    pair: tuple[wire.GroupView, wire.GroupView], comparison: GroupComparison, column: str
) -> wire.GroupComparisonView:
    """Return the comparison as JSON shows it."""
    result = comparison.result
    return {
        "column": column,
        "groups": list(pair),
        "test": comparison.test or None,
        "p": None if result is None else result.p,
        "difference": None if result is None else result.difference,
        "low": None if result is None else result.low,
        "high": None if result is None else result.high,
        "verdict": comparison.verdict,
        "notes": list(comparison.notes),
    }
