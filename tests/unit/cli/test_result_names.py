"""`results`, where a parameter or a metric has the name of a column of riseml."""

from __future__ import annotations

import csv
from typing import Any

from riseml.cli.output.results_view import list_csv, list_results
from riseml.cli.output.style import Style
from riseml.results.rows import BUILT_IN
from tests.unit.cli.commands.test_results import FOUND, make_metric, make_result

OWN = {name: f"own-{name}" for name in BUILT_IN}
ROW = make_result(2, 1, make_metric("loss", 0.5), make_metric("time", 7.5), parameters={**OWN, "lr": "0.1"})
CLASH: Any = {
    **FOUND,
    "objective": {"metric": "loss", "goal": "minimize"},
    "parameters": ["rank", "lr"],
    "same": {name: text for name, text in OWN.items() if name != "rank"},
    "metrics": ["loss", "time"],
    "best": ROW,
    "experiments": [ROW],
}


def test_the_csv_has_every_column_once_under_its_own_name() -> None:
    lines = list_csv(CLASH)
    header = lines[0].split(",")
    assert len(set(header)) == len(header)
    (found,) = csv.DictReader(lines)
    assert {name: found[f"parameters.{name}"] for name in BUILT_IN} == OWN
    values = [found[name] for name in ("rank", "id", "state", "time", "workers", "host", "lr", "time.last")]
    assert values == ["1", "144.2", "FINISHED", "400", "2", "gpu1", "0.1", "7.5"]
    assert list_csv(CLASH, ["rank", "parameters.rank", "metrics.time"])[1] == "1,own-rank,7.5"


def test_the_table_has_every_column_once_under_its_own_name() -> None:
    table = list_results(CLASH, Style())
    assert " ".join(table[0].split()) == "RANK ID parameters.rank lr loss loss.last metrics.time STATE TIME HOST"
    row = table[1].split()
    assert row[1:] == ["1", "144.2", "own-rank", "0.1", "0.5", "0.5", "7.5", "FINISHED", "6m40s", "gpu1"]
    chosen = list_results(CLASH, Style(), ["id", "state", "parameters.state", "rank", "parameters.rank"])
    assert chosen[1].split()[1:] == ["144.2", "FINISHED", "own-state", "1", "own-rank"]


def test_a_metric_with_the_name_of_a_parameter_has_its_own_values() -> None:
    row = make_result(2, None, make_metric("lr", 7.0), parameters={"lr": "0.1"})
    found: Any = {**FOUND, "objective": None, "best": None, "same": {}, "metrics": ["lr"], "experiments": [row]}
    table = list_results(found, Style())
    assert [table[0].split()[1:3], table[1].split()[1:3]] == [["lr", "metrics.lr"], ["0.1", "7"]]
    assert table[3].startswith("Nothing is ranked: --sort -metrics.lr puts the largest lr first"), table
