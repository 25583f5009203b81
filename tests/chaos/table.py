"""The table of `make chaos`: a row for each kind of fault, the sums below, and the same as JSON and Markdown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from tests.chaos.ledger import Tally

WIDTH = 80
LEAST_INJECTIONS, LEAST_KINDS = 200, 25
EXECUTORS = ("docker", "process", "slurm")

Rows = Mapping[str, Mapping[str, Tally]]
"""The tally of each executor, by name of the fault."""


def sum_rows(rows: Rows) -> Tally:
    """Return the sum of all tallies."""
    return sum((tally for found in rows.values() for tally in found.values()), Tally())


def print_table(rows: Rows, console: Console | None = None) -> None:
    """Print the table with 80 columns, whatever the terminal is."""
    console = console or Console(width=WIDTH)
    console.print(_make_table(rows))
    for note in sum_rows(rows).notes:
        console.print(f"[red]wrong[/red] {note}", soft_wrap=True, highlight=False)


def write_json(rows: Rows, path: Path) -> None:
    """Write every number of the table, and the notes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "kinds": len(rows),
        "total": _tally_to_json(sum_rows(rows)),
        "faults": [
            {"fault": name, "executors": {where: _tally_to_json(tally) for where, tally in found.items()}}
            for name, found in rows.items()
        ],
    }
    path.write_text(json.dumps(document, indent=1) + "\n")


def read_json(path: Path) -> Rows:
    """Return the rows that `write_json` wrote."""
    document = json.loads(path.read_text())
    return {
        row["fault"]: {
            where: Tally(**{**found, "notes": tuple(found["notes"])}) for where, found in row["executors"].items()
        }
        for row in document["faults"]
    }


def format_markdown(rows: Rows) -> str:
    """Return the table as Markdown."""
    lines = [
        "| fault | injected on docker | on processes | on Slurm | verdicts right | left | lines lost | repeated |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, found in [*rows.items(), ("**all**", _sum_by_executor(rows))]:
        tally = sum(found.values(), Tally())
        injected = " | ".join(str(found[where].injected) if where in found else "" for where in EXECUTORS)
        right = f"{tally.right} of {tally.experiments}"
        lines.append(f"| {name} | {injected} | {right} | {tally.left} | {tally.lost} | {tally.repeated} |")
    return "\n".join(lines) + "\n"


def _make_table(rows: Rows) -> Table:
    table = Table(box=box.SIMPLE_HEAD, width=WIDTH, show_footer=True, padding=(0, 1, 0, 0))
    sums = sum_rows(rows)
    table.add_column("fault", footer=f"{len(rows)} kinds", no_wrap=True)
    for head, foot in (
        ("times", sums.injected),
        ("right", f"{sums.right}/{sums.experiments}"),
        ("left", sums.left),
        ("lost", sums.lost),
        ("again", sums.repeated),
    ):
        table.add_column(head, footer=str(foot), justify="right", no_wrap=True)
    for name, found in rows.items():
        tally = sum(found.values(), Tally())
        cells = (tally.injected, f"{tally.right}/{tally.experiments}", tally.left, tally.lost, tally.repeated)
        table.add_row(name, *map(str, cells), style=None if tally.clean else "red")
    return table


def _sum_by_executor(rows: Rows) -> dict[str, Tally]:
    return {where: sum((found[where] for found in rows.values() if where in found), Tally()) for where in EXECUTORS}


def _tally_to_json(tally: Tally) -> dict[str, Any]:
    return {
        "injected": tally.injected,
        "experiments": tally.experiments,
        "right": tally.right,
        "left": tally.left,
        "lost": tally.lost,
        "repeated": tally.repeated,
        "notes": list(tally.notes),
    }
