"""Results as a table and as CSV: at every width, and with names that are also columns of riseml."""

from __future__ import annotations

import csv
from typing import Any

import pytest

from riseml import wire
from riseml.analysis.rows import BUILT_IN
from riseml.cli.output.results_view import list_csv, list_results
from riseml.cli.output.style import Style
from riseml.cli.output.text import clean_text
from riseml.cli.output.widths import measure_width
from tests.unit.cli.result_rows import BAD, FOUND, ROWS, make_metric, make_result


def test_nothing_is_ranked_without_a_goal() -> None:
    plain: wire.ResultList = {**FOUND, "objective": None, "best": None, "total": 3, "same": {}}
    lines = list_results(plain, Style())
    assert lines[0].split() == ["ID", "lr", "accuracy", "loss", "STATE", "TIME", "HOST"]
    assert lines[-1].startswith("Nothing is ranked: --sort -accuracy puts the largest accuracy first")
    none: wire.ResultList = {**plain, "experiments": [], "matched": 0}
    assert list_results(none, Style()) == ["None of 3 experiments meets the conditions."]
    many: wire.ResultList = {**plain, "matched": 9_000, "total": 9_000, "metrics": []}
    assert list_results(many, Style())[-1] == "... and 8,997 more; `-n 0` shows all, and so do --csv and --json"


def test_several_objectives_name_their_front() -> None:
    scores: tuple[dict[str, float], ...] = ({"accuracy": 0.25, "loss": 0.125}, {"accuracy": 0.75, "loss": 0.5}, {})
    several: wire.ResultList = {
        **FOUND,
        "objective": None,
        "objectives": [
            {"metric": "accuracy", "goal": "maximize", "rule": "last", "words": "the largest last accuracy"},
            {"metric": "loss", "goal": "minimize", "rule": "last", "words": "the smallest last loss"},
        ],
        "best": None,
        "experiments": [
            {**row, "rank": rank, "value": None, "scores": some}
            for row, rank, some in zip(ROWS, (1, 1, None), scores, strict=True)
        ],
    }
    lines = list_results(several, Style())
    assert lines[0].split()[:5] == ["RANK", "ID", "lr", "accuracy", "loss"]
    assert lines[1].split()[3:5] == ["0.25", "0.125"], "the values that rank"
    front = f"{ROWS[0]['id']}, {ROWS[1]['id']}"
    goals = "accuracy (larger) and loss (smaller)"
    assert f"RANK 1 is the Pareto front: no other experiment beats {front} in {goals}" in lines
    assert not any("lucky" in line for line in lines)
    seeded: wire.ResultList = {**several, "parameters": ["lr", "seed"]}
    assert any(line.startswith("One run may have a lucky seed") for line in list_results(seeded, Style()))


@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize("width", [40, 80, 200, None])
def test_the_table_fits_and_shows_no_foreign_control_characters(width: int | None, *, colour: bool) -> None:
    long = {f"{BAD}parameter-{number}": f"{number}{BAD}" for number in range(6)}
    hostile: wire.ResultList = {
        **FOUND,
        "parameters": list(long),
        "same": {BAD: BAD},
        "metrics": ["accuracy", *(f"{BAD}metric-{number}" for number in range(5))],
        "experiments": [{**one, "id": f"{one['id']}{BAD}", "parameters": long, "hosts": [BAD]} for one in ROWS],
    }
    for found in (FOUND, hostile):
        lines = list_results(found, Style(colour, width))
        assert all("\x07" not in line and "\u202e" not in line and "\x1b[2J" not in line for line in lines)
        table = [clean_text(line) for line in lines[: lines.index("")]]
        if width is not None:
            assert max(map(measure_width, table)) <= width


def test_on_a_narrow_terminal_the_parameters_stay() -> None:
    points = [{"lr": "0.00123456", "units": "128", "layers": str(at)} for at in range(3)]
    rows = [{**one, "parameters": point} for one, point in zip(ROWS, points, strict=True)]
    found: Any = {**FOUND, "parameters": ["lr", "units", "layers"], "experiments": rows}
    wide = list_results(found, Style(width=100))
    assert wide[0].split() == ["RANK", "ID", "lr", "units", "layers", "accuracy", "loss", "STATE", "TIME", "HOST"]
    usual = list_results(found, Style(width=78))
    assert usual[0].split() == ["RANK", "ID", "lr", "units", "layers", "accuracy", "loss", "STATE", "TIME"]
    assert "Too narrow for HOST: a wider terminal, --columns or --csv shows them" in usual
    narrow = list_results(found, Style(width=50))
    assert narrow[0].split() == ["RANK", "ID", "PARAMS", "accuracy", "STATE"]
    assert all(f"layers={at}" in "\n".join(narrow) for at in range(3)), "all of them can be read"


OWN = {name: f"own-{name}" for name in BUILT_IN}
ROW = make_result(2, 1, make_metric("loss", 0.5), make_metric("time", 7.5), parameters={**OWN, "lr": "0.1"})
CLASH: Any = {
    **FOUND,
    "objective": {"metric": "loss", "goal": "minimize", "rule": "best", "words": "the smallest loss"},
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
    owned: Any = {**CLASH, "experiments": [{**ROW, "user": "ann", "created_at": "2026-11-01T10:00:00Z"}]}
    assert list_csv(owned, ["user", "created", "type"])[1] == "ann,2026-11-01T10:00:00Z,experiment"


def test_a_heading_has_quotes_only_where_the_name_means_another_column_without_them() -> None:
    row = make_result(2, 1, make_metric("val loss", 0.5), make_metric("g", 1.0), make_metric("g.max", 2.0))
    found: Any = {**CLASH, "metrics": ["val loss", "g", "g.max"], "best": row, "experiments": [row]}
    names = ['"val loss"', 'metrics."val loss".max', '"g".max', '"g.max"']
    assert list_csv(found, names)[0] == 'val loss,val loss.max,"""g"".max",g.max'
    assert list_results(found, Style(width=100), names[:2])[0].split("  ")[-1].strip() == "val loss.max"


def test_the_table_has_every_column_once_under_its_own_name() -> None:
    table = list_results(CLASH, Style())
    assert " ".join(table[0].split()) == "RANK ID parameters.rank lr loss metrics.time STATE TIME HOST"
    row = table[1].split()
    assert row[1:] == ["1", "144.2", "own-rank", "0.1", "0.5", "7.5", "FINISHED", "6m40s", "gpu1"]
    every = list_results(CLASH, Style(), every=True)[0].split()
    assert every[4:11] == ["loss", "loss.last", "metrics.time", "loss.min", "loss.max", "time.min", "time.max"]
    chosen = list_results(CLASH, Style(), ["id", "state", "parameters.state", "rank", "parameters.rank"])
    assert chosen[1].split()[1:] == ["144.2", "FINISHED", "own-state", "1", "own-rank"]


def test_a_metric_with_the_name_of_a_parameter_has_its_own_values() -> None:
    row = make_result(2, None, make_metric("lr", 7.0), parameters={"lr": "0.1"})
    found: Any = {**FOUND, "objective": None, "best": None, "same": {}, "metrics": ["lr"], "experiments": [row]}
    table = list_results(found, Style())
    assert [table[0].split()[1:3], table[1].split()[1:3]] == [["lr", "metrics.lr"], ["0.1", "7"]]
    assert table[3].startswith("Nothing is ranked: --sort -metrics.lr puts the largest lr first"), table


def test_trials_of_a_population_have_columns_for_generation_and_parent() -> None:
    rows = [
        make_result(3, 1, make_metric("accuracy", 0.75), generation=2, parent="144.1"),
        make_result(1, 2, make_metric("accuracy", 0.5), generation=1),
    ]
    population: wire.ResultList = {**FOUND, "metrics": ["accuracy"], "experiments": rows, "best": rows[0]}
    table = list_results(population, Style())
    assert table[0].split()[:5] == ["RANK", "ID", "GENERATION", "PARENT", "lr"]
    assert table[1].split()[:5] == ["*", "1", "144.3", "2", "144.1"]
    assert list_csv(population)[0].startswith("rank,id,generation,parent,epochs,lr,")
    assert list_csv(population, ["id", "generation", "parent"])[1:] == ["144.3,2,144.1", "144.1,1,"]
    assert list_results(population, Style(), ["parent", "generation"])[1].split() == ["*", "144.1", "2"]
    assert "generation" not in list_csv(FOUND)[0]


def test_what_users_say_is_in_the_table_where_it_differs_and_whole_in_the_csv() -> None:
    said = {"name": "lr warmup", "tags": ["baseline", "lr"], "note": "why\n\n  because", "starred": True}
    first, *others = ROWS
    results: wire.ResultList = {**FOUND, "experiments": [{**first, **said}, *others], "archived": 2}  # type: ignore[typeddict-item]  # the fields of the shape, by name
    lines = list_results(results, Style())
    assert lines[0].split()[:5] == ["RANK", "ID", "NAME", "TAGS", "MARKS"]
    assert "lr warmup  baseline,lr  starred" in lines[1]
    assert "Left out: 2 archived experiments; --archived shows them" in lines
    alike: wire.ResultList = {**FOUND, "experiments": [{**row, **said} for row in ROWS]}  # type: ignore[typeddict-item]  # as above
    assert "NAME" not in list_results(alike, Style())[0], "a column in which all are alike is left out"
    assert "why because" in list_results(results, Style(), ["id", "note"])[1]
    cells = list(csv.reader("\n".join(list_csv(results)).splitlines(keepends=True)))[1]
    assert cells[-4:] == ["lr warmup", "baseline,lr", "starred", "why\n\n  because"]
