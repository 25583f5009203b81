"""`results`, with the fake server: its table, its columns and what it refuses."""

from __future__ import annotations

import csv
import io
import json

import pytest

from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer, make_experiment
from tests.unit.cli.result_rows import FOUND, ROWS, make_metric, make_result


def test_the_table_marks_the_best_and_says_what_is_alike(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["GET /results"] = (200, FOUND)
    result = riseml("results", "144", "--where", "lr<0.5", "--sort", "-accuracy")
    assert fake_server.asked[-1] == "GET /results?where=lr%3C0.5&sort=-accuracy&limit=100&of=144"
    assert result.out.splitlines() == [
        "   RANK  ID      lr  accuracy  loss  STATE      TIME  HOST",
        "*     1  144.2  0.2     0.981  0.25  FINISHED  6m40s  gpu1",
        "      2  144.1  0.1      0.75   nan  FINISHED  3m20s  gpu1",
        "      -  144.3  0.3         -     -  FAILED        -  -",
        "",
        "* 144.2 accuracy 0.981 (lr=0.2, epochs=20): the largest accuracy",
        "All have epochs=20",
        "Left out by the conditions: 1 of 4 experiments",
    ]
    assert json.loads(riseml("results", "144", "--json").out) == FOUND
    assert "limit" not in fake_server.asked[-1]


def test_columns_that_are_the_same_are_a_line_unless_all_are_wanted(riseml: Riseml, fake_server: FakeServer) -> None:
    alike = [make_result(at, at, make_metric("accuracy", 0.1 * at), make_metric("loss", 2, 0.5)) for at in (1, 2)]
    fake_server.answers["GET /results"] = (200, {**FOUND, "best": alike[0], "experiments": alike})
    lines = riseml("results", "144").out.splitlines()
    assert lines[0].split() == ["RANK", "ID", "lr", "accuracy", "TIME"]
    assert "All have epochs=20, loss=0.5, state=FINISHED, host=gpu1" in lines
    every = riseml("results", "144", "--all").out.splitlines()
    values = ["accuracy", "accuracy.last", "loss", "accuracy.min", "accuracy.max", "loss.min", "loss.max"]
    assert every[0].split() == ["RANK", "ID", "lr", *values[:2], "loss", *values[3:], "STATE", "TIME", "HOST"]
    assert "All have epochs=20" in every
    csv = riseml("results", "144", "--csv").out.splitlines()[0].split(",")
    assert {"loss.last", "loss.min", "loss.max", "epochs", "state", "host"} <= set(csv)
    fake_server.answers["GET /results"] = (200, {**FOUND, "best": alike[0], "experiments": alike[:1]})
    assert "STATE" in riseml("results", "144").out, "of one row, every column is shown"


@pytest.mark.parametrize("option", ["--csv", "--json", "--columns=lr", "--group", "--scaling", "--compare"])
def test_all_is_for_the_usual_table(riseml: Riseml, fake_server: FakeServer, option: str) -> None:
    result = riseml("results", "144", "--all", option)
    assert (result.code, result.out, fake_server.asked) == (2, "", [])
    assert "--all" in result.err
    assert "hint: leave " in result.err or '"fix": "leave ' in result.err


def test_without_an_id_it_shows_the_project(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["GET /results"] = (200, FOUND)
    fake_server.experiments["4"] = make_experiment()
    riseml("results", "-n", "0")
    assert fake_server.asked[-1] == "GET /results?sort=&project=ai-toaster"
    riseml("results", "--project", "other", "-n", "5")
    assert fake_server.asked[-1] == "GET /results?sort=&limit=5&project=other"


def test_columns_are_chosen_by_their_names(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["GET /results"] = (200, FOUND)
    shown = riseml("results", "144", "--columns", "id, accuracy.min,loss.step,workers,rank").out.splitlines()
    assert shown[:3] == [
        "   ID     accuracy.min  loss.step  workers  RANK",
        "*  144.2          0.97          3        2     1",
        "   144.1           0.5          3        1     2",
    ]
    refused = riseml("results", "144", "--columns", "acuracy")
    assert refused.code == 2
    assert "there is no column 'acuracy'" in refused.err
    assert "did you mean 'accuracy'?" in refused.err


def test_csv_has_every_column_with_all_digits(riseml: Riseml, fake_server: FakeServer) -> None:
    row = make_result(1, None, make_metric("accuracy", 1 / 3), parameters={"lr": '0,1 "x"\n2', "epochs": "20"})
    fake_server.answers["GET /results"] = (200, {**FOUND, "experiments": [row]})
    lines = riseml("results", "144", "--csv").out.splitlines()
    (found,) = csv.DictReader(io.StringIO("\n".join(lines), newline=""))
    assert found["lr"] == '0,1 "x"\n2'
    assert found["accuracy.last"] == repr(1 / 3)
    assert (found["rank"], found["loss.max"], found["time"], found["host"]) == ("", "", "200", "gpu1")
    assert riseml("results", "144", "--csv", "--columns", "id,lr").out.splitlines()[0] == "id,lr"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--csv", "--json"], "--csv and --json exclude each other"),
        (["--csv", "--format", "md"], "--csv and md exclude each other"),
        (["--format", "xlsx"], "'xlsx' is not one of 'table', 'csv', 'json', 'md', 'latex'"),
        (["--format", "csv", "--digits", "3"], "--digits is for tables, and csv has all digits"),
        (["--json", "--digits", "3"], "--digits is for tables, and json has all digits"),
        (["--digits", "0"], "0 is not in the range"),
        (["--digits", "many"], "'many' is not a"),
        (["--format"], "requires an argument"),
        (["4", "--project", "x"], "--project and IDs exclude each other"),
        (["no/way"], "'no/way' is not an experiment ID"),
        (["4", "--rate", "x"], "--rate is for --scaling"),
    ],
)
def test_a_wrong_use_is_refused(riseml: Riseml, words: list[str], message: str) -> None:
    result = riseml("results", *words)
    assert result.code == 2
    assert message in result.err


def test_the_scaling_table(riseml: Riseml, fake_server: FakeServer) -> None:
    rows = [
        make_result(count, None, make_metric("rate", 1, 100.0 * count**0.5), make_metric("accuracy", 0.2 * count))
        for count in (1, 2, 4)
    ]
    found = {**FOUND, "objective": None, "best": None, "metrics": ["rate", "accuracy"], "experiments": [*rows, ROWS[2]]}
    fake_server.answers["GET /results"] = (200, found)
    assert riseml("results", "144", "--scaling").out.splitlines() == [
        "WORKERS  RUNS    TIME     rate  SPEED-UP  EFFICIENCY  accuracy",
        "      1     1   3m20s      100      1.00        100%       0.2",
        "      2     1   6m40s  141.421      1.41         71%       0.4",
        "      4     1  13m20s      200      2.00         50%       0.8",
        "",
        "Speed-up and efficiency are those of the rate rate.",
        "1 experiment not finished, and left out.",
    ]
    shown = json.loads(riseml("results", "144", "--scaling", "--json").out)
    assert (shown["rate"], shown["left_out"], shown["rows"][2]["speed_up"]) == ("rate", 1, 2.0)
    assert riseml("results", "144", "--scaling", "--rate", "x").code == 2
    by_efficiency = riseml("results", "144", "--scaling", "--sort", "-speed-up,time").out.splitlines()
    assert [line.split()[0] for line in by_efficiency[1:4]] == ["4", "2", "1"]
    refused = riseml("results", "144", "--scaling", "--sort", "lr")
    assert refused.code == 2
    assert "--scaling has no column 'lr' to sort by" in refused.err


TEXTS = ["2.1", "2.10", "01", "9007199254740993", "1e5", "-x"]


def serve_texts(fake_server: FakeServer) -> None:
    rows = [make_result(at, at, make_metric("g", 0.5 * at), parameters={"v": text}) for at, text in enumerate(TEXTS, 1)]
    found = {
        **FOUND,
        "objective": {"metric": "g", "goal": "minimize", "rule": "best", "words": "the smallest g"},
        "best": rows[0],
        "same": {},
        "metrics": ["g"],
    }
    notes = ["v mixes numbers and texts"]
    fake_server.answers["GET /results"] = (200, {**found, "parameters": ["v"], "experiments": rows, "notes": notes})


def test_parameters_are_shown_as_they_are_written(riseml: Riseml, fake_server: FakeServer) -> None:
    serve_texts(fake_server)
    shown = riseml("results", "144").out.splitlines()
    assert [line.removeprefix("*").split()[2] for line in shown[1:7]] == TEXTS
    assert shown[-1] == "Note: v mixes numbers and texts"
    chosen = riseml("results", "144", "--columns", "v,id").out.splitlines()
    assert [line.removeprefix("*").split()[0] for line in chosen[1:7]] == TEXTS
    table = riseml("results", "144", "--csv")
    assert [row["v"] for row in csv.DictReader(table.out.splitlines())] == [*TEXTS[:-1], "'-x"]
    assert "v mixes numbers and texts" in table.err
    document = json.loads(riseml("results", "144", "--json").out)
    assert [row["parameters"]["v"] for row in document["experiments"]] == TEXTS


def test_results_for_a_paper(riseml: Riseml, fake_server: FakeServer) -> None:
    serve_texts(fake_server)
    latex = riseml("results", "144", "--format", "latex", "--columns", "v,g", "--digits", "3").out.splitlines()
    assert latex[:2] == [r"\begin{tabular}{lr}", r"\toprule"]
    assert latex[4:6] == [r"2.1 & \textbf{0.500} \\", r"2.10 & 1.00 \\"]
    least = riseml("results", "144", "--format", "latex", "--columns", "g.min,g.max").out.splitlines()
    assert least[4] == r"\textbf{0.5} & 0.5 \\"
    markdown = riseml("results", "144", "--format", "md").out.splitlines()
    assert markdown[0] == "| RANK | ID | v | g | g.last | STATE | TIME | HOST |"
    assert markdown[2] == "| 1 | 144.1 | 2.1 | **0.5** | 0.5 | FINISHED | 3m20s | gpu1 |"
    assert riseml("results", "144", "--format", "csv").out == riseml("results", "144", "--csv").out
    assert (
        riseml("results", "144", "--format", "json").out == riseml("results", "144", "--json", "--format", "json").out
    )
    assert riseml("results", "144", "--format", "table").out == riseml("results", "144").out
    digits = riseml("results", "144", "--digits", "2", "--columns", "g.max").out.splitlines()
    assert digits[1].split() == ["*", "0.5"]


def test_scaling_in_every_format(riseml: Riseml, fake_server: FakeServer) -> None:
    rows = [
        make_result(count, None, make_metric("rate", 1, 100.0 * count**0.5), make_metric("time", 0.2 * count))
        for count in (1, 2)
    ]
    found = {**FOUND, "objective": None, "best": None, "metrics": ["rate", "time"], "experiments": rows}
    fake_server.answers["GET /results"] = (200, found)
    (first, second) = csv.DictReader(riseml("results", "144", "--scaling", "--csv").out.splitlines())
    assert first == {
        **{"workers": "1", "runs": "1", "time": "200", "rate": "100", "speed-up": "1", "efficiency": "1"},
        "metrics.time": "0.2",
    }
    assert (second["speed-up"], second["efficiency"]) == (repr(2**0.5 * 100.0 / 100), repr(2**0.5 / 2))
    assert riseml("results", "144", "--scaling", "--format", "md", "--digits", "3").out.splitlines() == [
        "| WORKERS | RUNS | TIME | rate | SPEED-UP | EFFICIENCY | metrics.time |",
        "| ---: | ---: | --- | ---: | ---: | --- | ---: |",
        "| 1 | 1 | 3m20s | 100 | 1.00 | 100% | 0.200 |",
        "| 2 | 1 | 6m40s | 141 | 1.41 | 71% | 0.400 |",
    ]
    assert r"SPEED-UP & EFFICIENCY" in riseml("results", "144", "--scaling", "--format", "latex").out
    by_metric = riseml("results", "144", "--scaling", "--sort", "-metrics.time").out.splitlines()
    assert [line.split()[0] for line in by_metric[1:3]] == ["2", "1"]
