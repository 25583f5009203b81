"""`results` and `plot`: the commands with the fake server, and their views at every width."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from riseml import wire
from riseml.cli.output.chart import Chart, ChartSeries, make_curves, make_scatter
from riseml.cli.output.results_view import format_time, list_results
from riseml.cli.output.scaling_view import list_scaling
from riseml.cli.output.style import Style
from riseml.cli.output.svg_plot import draw_svg
from riseml.cli.output.terminal_plot import draw_chart
from riseml.cli.output.text import clean_text
from riseml.cli.output.widths import measure_width
from riseml.results.scaling import Scaling, ScalingRow
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import NOW, FakeServer, make_experiment

BAD = "\x1b[2J\x07\u202e"


def make_metric(name: str, *values: float, last_step: int | None = 3) -> wire.MetricView:
    finite = [value for value in values if value == value]
    return {
        "name": name,
        "count": len(values),
        "last": values[-1] if values[-1] == values[-1] else "nan",
        "last_step": last_step,
        "last_at": NOW,
        "min": min(finite, default=None),
        "min_step": 1,
        "max": max(finite, default=None),
        "max_step": 1,
        "attempt": 1,
        "not_finite": len(values) - len(finite),
    }


def make_result(sub: int, rank: int | None, *metrics: wire.MetricView, **changes: Any) -> wire.ResultView:
    result: wire.ResultView = {
        "id": f"144.{sub}",
        "project": "toaster",
        "rank": rank,
        "state": "FINISHED",
        "reason": "COMPLETED",
        "parameters": {"lr": f"0.{sub}", "epochs": "20"},
        "metrics": list(metrics),
        "workers": sub,
        "hosts": ["gpu1"],
        "seconds": 200.0 * sub,
        "started_at": NOW,
        "ended_at": NOW,
    }
    return {**result, **changes}  # type: ignore[typeddict-item]  # the fields of the shape, by name


BEST = make_result(2, 1, make_metric("accuracy", 0.981, 0.97), make_metric("loss", 0.5, 0.25))
ROWS = [
    BEST,
    make_result(1, 2, make_metric("accuracy", 0.5, 0.75), make_metric("loss", 3, float("nan"))),
    make_result(3, None, state="FAILED", seconds=None, hosts=[]),
]
FOUND: wire.ResultList = {
    "objective": {"metric": "accuracy", "goal": "maximize"},
    "total": 4,
    "matched": 3,
    "parameters": ["lr"],
    "same": {"epochs": "20"},
    "metrics": ["accuracy", "loss"],
    "best": BEST,
    "experiments": ROWS,
}


def test_the_table_marks_the_best_and_says_what_is_alike(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["GET /results"] = (200, FOUND)
    result = riseml("results", "144", "--where", "lr<0.5", "--sort", "-accuracy")
    assert fake_server.asked[-1] == "GET /results?where=lr%3C0.5&sort=-accuracy&limit=100&of=144"
    assert result.out.splitlines() == [
        "   RANK  ID      lr  accuracy  accuracy.last  loss  STATE      TIME  HOST",
        "*     1  144.2  0.2     0.981           0.97  0.25  FINISHED  6m40s  gpu1",
        "      2  144.1  0.1      0.75           0.75   nan  FINISHED  3m20s  gpu1",
        "      -  144.3  0.3         -              -     -  FAILED        -  -",
        "",
        "* 144.2 accuracy 0.981 (lr=0.2, epochs=20): the largest accuracy",
        "All have epochs=20",
        "Left out by the conditions: 1 of 4 experiments",
    ]
    assert json.loads(riseml("results", "144", "--json").out) == FOUND
    assert "limit" not in fake_server.asked[-1]


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
    (found,) = csv.DictReader(lines)
    assert found["lr"] == '0,1 "x" 2'
    assert found["accuracy.last"] == repr(1 / 3)
    assert (found["rank"], found["loss.max"], found["time"], found["host"]) == ("", "", "200", "gpu1")
    assert riseml("results", "144", "--csv", "--columns", "id,lr").out.splitlines()[0] == "id,lr"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--csv", "--json"], "--csv and --json exclude each other"),
        (["4", "--project", "x"], "--project and IDs exclude each other"),
        (["no way"], "'no way' is not an experiment ID"),
        (["4", "--rate", "x"], "--rate is for --scaling"),
    ],
)
def test_a_wrong_use_is_refused(riseml: Riseml, words: list[str], message: str) -> None:
    result = riseml("results", *words)
    assert result.code == 2
    assert message in result.err


def test_nothing_is_ranked_without_a_goal() -> None:
    plain: wire.ResultList = {**FOUND, "objective": None, "best": None, "total": 3, "same": {}}
    lines = list_results(plain, Style())
    assert lines[0].split() == ["ID", "lr", "accuracy", "loss", "STATE", "TIME", "HOST"]
    assert lines[-1].startswith("Nothing is ranked: --sort -accuracy puts the largest accuracy first")
    none: wire.ResultList = {**plain, "experiments": [], "matched": 0}
    assert list_results(none, Style()) == ["None of 3 experiments meets the conditions."]
    many: wire.ResultList = {**plain, "matched": 9_000, "total": 9_000, "metrics": []}
    assert list_results(many, Style())[-1] == "... and 8,997 more; `-n 0` shows all, and so do --csv and --json"


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
    assert wide[0].split() == [
        "RANK",
        "ID",
        "lr",
        "units",
        "layers",
        "accuracy",
        "accuracy.last",
        "loss",
        "STATE",
        "TIME",
        "HOST",
    ]
    usual = list_results(found, Style(width=80))
    assert usual[0].split() == ["RANK", "ID", "lr", "units", "layers", "accuracy", "loss", "STATE", "TIME"]
    assert "Too narrow for HOST, accuracy.last: a wider terminal, --columns or --csv shows them" in usual
    narrow = list_results(found, Style(width=50))
    assert narrow[0].split() == ["RANK", "ID", "PARAMS", "accuracy", "STATE"]
    assert all(f"layers={at}" in "\n".join(narrow) for at in range(3)), "all of them can be read"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (0.4, "0s"), (59.9, "59s"), (200, "3m20s"), (7500, "2h05m"), (864_000, "10 days")],
)
def test_times_are_short(seconds: float | None, text: str) -> None:
    assert format_time(seconds) == text


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


@pytest.mark.parametrize("width", [40, 80, 200, None])
def test_the_scaling_table_fits(width: int | None) -> None:
    metrics = {f"{BAD}metric-{number}": 1.0 for number in range(20)}
    scaling = Scaling("", (ScalingRow(1, 1, 5.0, None, None, None, metrics),), 0)
    lines = list_scaling(scaling, Style(width=width))
    assert all("\x1b" not in line for line in lines)
    if width is not None and width > 40:
        assert max(map(len, lines[:2])) <= width
    assert list_scaling(Scaling("", (), 3), Style()) == ["No experiment has finished: there is nothing to compare."]


def make_history(sub: int, *values: float, steps: bool = True) -> wire.MetricHistoryView:
    buckets: list[wire.MetricBucket] = [
        {
            "first_step": 10 * at if steps else None,
            "last_step": 10 * at if steps else None,
            "first_at": NOW,
            "last_at": NOW,
            "min": value,
            "mean": value,
            "max": value,
            "count": 1,
        }
        for at, value in enumerate(values, 1)
    ]
    return {"id": f"144.{sub}", "metric": "accuracy", "buckets": buckets}


def serve_plot(fake_server: FakeServer) -> None:
    fake_server.answers["GET /results"] = (200, FOUND)
    for sub in (1, 2):
        history = make_history(sub, 0.1 * sub, 0.2 * sub, 0.45 * sub)
        fake_server.answers[f"GET /experiments/144.{sub}/metrics/history"] = (200, history)


def test_plot_draws_a_curve_for_each_experiment(riseml: Riseml, fake_server: FakeServer) -> None:
    serve_plot(fake_server)
    result = riseml("plot", "144", "accuracy")
    lines = result.out.splitlines()
    assert lines[0] == "accuracy"
    assert lines[-2:] == ["*  144.2 lr=0.2 (best)", "b  144.1 lr=0.1"]
    assert "".join(lines).count("*") > 10
    assert max(map(measure_width, lines)) <= 80
    assert riseml("plot", "144").out == result.out  # the metric that ranks the set
    shown = json.loads(riseml("plot", "144", "--json").out)
    assert shown["series"][0] == {"label": "144.2 lr=0.2 (best)", "points": [[10, 0.2], [20, 0.4], [30, 0.9]]}


def test_plot_draws_a_metric_over_a_parameter(riseml: Riseml, fake_server: FakeServer) -> None:
    serve_plot(fake_server)
    lines = riseml("plot", "144", "accuracy", "--against", "lr").out.splitlines()
    assert lines[0] == "accuracy over lr"
    assert "".join(lines).count("•") == 1
    assert "".join(lines[:-1]).count("◆") == 1
    assert lines[-1] == "◆  144.2 lr=0.2 (best)"


def test_of_many_curves_the_best_are_drawn_and_the_best_one_on_top(riseml: Riseml, fake_server: FakeServer) -> None:
    rows = [make_result(at, at, make_metric("accuracy", 0.5)) for at in range(1, 13)]
    fake_server.answers["GET /results"] = (200, {**FOUND, "best": rows[0], "experiments": rows})
    for sub in range(1, 11):
        fake_server.answers[f"GET /experiments/144.{sub}/metrics/history"] = (200, make_history(sub, 0.1, 0.2, 0.45))
    lines = riseml("plot", "144").out.splitlines()
    assert lines[-1] == "The best 10 of 12 experiments; --where and --sort choose others"
    drawing = "".join(lines[1:-11])
    assert drawing.count("*") > 10
    assert not {"b", "c", "d"} & set(drawing.replace("step", "")), "all curves are the same, and the best one is on top"


def test_conditions_that_no_experiment_meets_are_named(riseml: Riseml, fake_server: FakeServer) -> None:
    none = {**FOUND, "matched": 0, "metrics": [], "experiments": [], "best": None}
    fake_server.answers["GET /results"] = (200, none)
    refused = riseml("plot", "144", "--where", "lr<0")
    assert refused.code == 3
    assert "none of 4 experiments meets the conditions" in refused.err


def test_plot_writes_files(riseml: Riseml, fake_server: FakeServer, folder: Path) -> None:
    serve_plot(fake_server)
    assert riseml("plot", "144", "--svg", "a.svg").out == "Wrote a.svg\n"
    root = ElementTree.fromstring((folder / "a.svg").read_text())
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"accuracy", "step", "144.2 lr=0.2 (best)", "144.1 lr=0.1"} <= set(texts)
    assert len(root.findall("{http://www.w3.org/2000/svg}polyline")) == 2
    refused = riseml("plot", "144", "--svg", "no/such/folder/a.svg")
    assert refused.code == 4
    assert "cannot write no/such/folder/a.svg" in refused.err


def test_png_says_what_it_needs(riseml: Riseml, fake_server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    serve_plot(fake_server)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    refused = riseml("plot", "144", "--png", "a.png")
    assert refused.code == 2
    assert "pip install 'riseml[plot]'" in refused.err


def test_png_is_a_picture(riseml: Riseml, fake_server: FakeServer, folder: Path) -> None:
    pytest.importorskip("matplotlib")
    serve_plot(fake_server)
    assert riseml("plot", "144", "--png", "a.png").code == 0
    assert (folder / "a.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["144", "acc"], "no metric 'acc' was reported"),
        (["144", "accuracy", "--against", "layers"], "there is no parameter 'layers'"),
        (["x", "accuracy"], "'x' is not an experiment ID"),
    ],
)
def test_what_cannot_be_plotted_is_refused(
    riseml: Riseml, fake_server: FakeServer, words: list[str], message: str
) -> None:
    serve_plot(fake_server)
    result = riseml("plot", *words)
    assert result.code in (2, 3)
    assert message in result.err


def test_without_a_goal_one_of_several_metrics_must_be_named(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["GET /results"] = (200, {**FOUND, "objective": None, "best": None})
    assert "name one of accuracy, loss" in riseml("plot", "144").err
    fake_server.answers["GET /results"] = (200, {**FOUND, "metrics": []})
    assert riseml("plot", "144").code == 3


CHARTS = [
    Chart("t", "x", "y", (ChartSeries("one", ((1.0, 2.0),)),)),
    Chart("t", "x", "y", (ChartSeries("same", ((1.0, 2.0), (5.0, 2.0))),)),
    Chart("t", "x", "y", (ChartSeries("far", ((0.0, -1e30), (1e12, 1e30))),)),
    Chart("t", "x", "y", tuple(ChartSeries(f"s{at}", ((1.0, at), (2.0, -at))) for at in range(12))),
    make_scatter("accuracy", "lr", [("1e-5", 0.2), ("1e-1", 0.8)]),
    make_scatter("accuracy", "opt", [("adam", 0.2), (f"sgd{BAD}", 0.8)]),
    make_curves("accuracy", [(ROWS[0], make_history(2, 1, 2, 3, steps=False))]),
    make_curves("accuracy", [(one, make_history(2, 1, 2, 3)) for one in ROWS], "144.2"),
    make_scatter("accuracy", "lr", [("1e-5", 0.2), ("1e-1", 0.8)], ("144.2", ("1e-1", 0.8))),
]


@pytest.mark.parametrize("chart", CHARTS)
@pytest.mark.parametrize(("width", "colour"), [(40, False), (80, True), (200, True), (None, False)])
def test_every_chart_is_drawn_and_fits(chart: Chart, width: int | None, *, colour: bool) -> None:
    lines = draw_chart(chart, Style(colour, width))
    assert max(measure_width(clean_text(line)) for line in lines) <= max(30, min(160, width or 80))
    assert not any("\x07" in line or "\u202e" in line for line in lines)
    assert all(line.isascii() for line in draw_chart(chart, Style(width=width), unicode=False))
    ElementTree.fromstring(draw_svg(chart))
