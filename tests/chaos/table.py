"""The table of `make chaos`: a row for each kind of fault, the sums below it, and the same as JSON."""

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

Rows = Mapping[str, Mapping[str, Tally]]
"""The tally of each executor, by the name of the fault."""


def total(rows: Rows) -> Tally:
    """Everything together."""
    return sum((tally for found in rows.values() for tally in found.values()), Tally())


def print_table(rows: Rows, console: Console | None = None) -> None:
    """Eighty columns, whatever the terminal is."""
    console = console or Console(width=WIDTH)
    console.print(_table(rows))
    for note in total(rows).notes:
        console.print(f"[red]wrong[/red] {note}", soft_wrap=True, highlight=False)


def write_json(rows: Rows, path: Path) -> None:
    """Every number of the table, and what was wrong."""
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "kinds": len(rows),
        "total": _numbers(total(rows)),
        "faults": [
            {"fault": name, "executors": {where: _numbers(tally) for where, tally in found.items()}}
            for name, found in rows.items()
        ],
    }
    path.write_text(json.dumps(document, indent=1) + "\n")


def read_json(path: Path) -> Rows:
    """What `write_json` wrote."""
    document = json.loads(path.read_text())
    return {
        row["fault"]: {
            where: Tally(**{**found, "notes": tuple(found["notes"])}) for where, found in row["executors"].items()
        }
        for row in document["faults"]
    }


def markdown(rows: Rows) -> str:
    """The table for a page."""
    lines = [
        "| fault | injected on docker | on processes | verdicts right | left | lines lost | lines repeated |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, found in [*rows.items(), ("**all**", _sums(rows))]:
        tally = sum(found.values(), Tally())
        docker, process = (str(found[where].injected) if where in found else "" for where in ("docker", "process"))
        right = f"{tally.right} of {tally.experiments}"
        lines.append(f"| {name} | {docker} | {process} | {right} | {tally.left} | {tally.lost} | {tally.repeated} |")
    return "\n".join(lines) + "\n"


def _table(rows: Rows) -> Table:
    table = Table(box=box.SIMPLE_HEAD, width=WIDTH, show_footer=True, padding=(0, 1, 0, 0))
    sums = total(rows)
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


def _sums(rows: Rows) -> dict[str, Tally]:
    return {
        where: sum((found[where] for found in rows.values() if where in found), Tally())
        for where in ("docker", "process")
    }


def _numbers(tally: Tally) -> dict[str, Any]:
    return {
        "injected": tally.injected,
        "experiments": tally.experiments,
        "right": tally.right,
        "left": tally.left,
        "lost": tally.lost,
        "repeated": tally.repeated,
        "notes": list(tally.notes),
    }
