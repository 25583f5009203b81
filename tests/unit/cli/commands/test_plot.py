"""`plot`: curves and points on the terminal and in files, and what cannot be plotted."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from riseml.cli.output.widths import measure_width
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer, make_experiment
from tests.unit.cli.group_rows import GROUPS, make_group
from tests.unit.cli.result_rows import FOUND, make_history, make_metric, make_result, serve_plot


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
    assert shown["series"][0] == {
        "label": "144.2 lr=0.2 (best)",
        "points": [[10, 0.2], [20, 0.4], [30, 0.9]],
        "band": [],
    }


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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["144", "acc"], "no metric 'acc' was reported"),
        (["144", "accuracy", "--against", "layers"], "there is no parameter 'layers'"),
        (["x", "accuracy"], "'x' is not an experiment ID"),
        (["144", "--by", ""], "--by names nothing"),
        (["144", "--by", "lr", "--group"], "--group and --by exclude each other"),
        (["144", "--by", "lr", "--against", "lr"], "--against and --by exclude each other"),
        (["144", "--band", "error"], "--band needs --by"),
        (["144", "--by", "lr", "--band", "wide"], "there is no band 'wide'"),
        (["144", "--by", "lr", "--band", ""], "there is no band ''"),
    ],
)
def test_what_cannot_be_plotted_is_refused(
    riseml: Riseml, fake_server: FakeServer, words: list[str], message: str
) -> None:
    serve_plot(fake_server)
    result = riseml("plot", *words)
    assert result.code in (2, 3)
    assert message in result.err


def test_without_a_goal_the_first_metric_is_drawn_and_the_others_are_named(
    riseml: Riseml, fake_server: FakeServer
) -> None:
    serve_plot(fake_server)
    fake_server.answers["GET /results"] = (200, {**FOUND, "objective": None, "best": None})
    result = riseml("plot", "144")
    assert result.out.splitlines()[0] == "accuracy"
    assert result.err == "note: also reported: loss; `riseml plot 144 loss` draws another one\n"
    assert riseml("plot", "144", "accuracy").err == ""
    many = [f"val loss {number}" for number in range(15)]
    fake_server.answers["GET /results"] = (200, {**FOUND, "metrics": ["accuracy", *many]})
    assert riseml("plot", "144").err.endswith(
        "val loss 9 and 5 more; `riseml plot 144 'val loss 0'` draws another one\n"
    )
    fake_server.answers["GET /results"] = (200, {**FOUND, "metrics": []})
    refused = riseml("plot", "144")
    assert refused.code == 3
    assert "hint: call `riseml.report(step=1, loss=0.5)` in the code" in refused.err


def test_without_an_id_the_last_experiment_of_the_project_is_drawn(
    riseml: Riseml, fake_server: FakeServer, tmp_path: Path
) -> None:
    serve_plot(fake_server)
    fake_server.experiments["144"] = make_experiment("144")
    assert riseml("plot").out == riseml("plot", "144").out
    assert "of=144" in next(path for path in fake_server.asked if path.startswith("GET /results"))
    (tmp_path / "elsewhere").mkdir()
    assert riseml("plot", where=tmp_path / "elsewhere").code == 3
    fake_server.experiments.clear()
    assert "has no experiment yet" in riseml("plot").err
    assert "'accuracy' is not an experiment ID" in riseml("plot", "accuracy").err


def test_plot_draws_means_over_seeds_with_bands(riseml: Riseml, fake_server: FakeServer, folder: Path) -> None:
    rows = [make_result(at, at, make_metric("accuracy", 0.5)) for at in (1, 2)]
    fake_server.answers["GET /results"] = (200, {**FOUND, "best": rows[0], "experiments": rows})
    fake_server.answers["GET /results/groups"] = (200, {**GROUPS, "groups": [make_group(1, "0.1", 0.4, 0.5, rank=1)]})
    for sub in (1, 2):
        history = make_history(sub, 0.1 * sub, 0.2 * sub, 0.45 * sub)
        fake_server.answers[f"GET /experiments/144.{sub}/metrics/history"] = (200, history)
    assert riseml("plot", "144", "--group").out.splitlines()[-2:] == [
        "a  lr=0.1 (n = 2) (best)",
        "Means over seeds; --svg and --png draw their 95% intervals as bands",
    ]
    (series,) = json.loads(riseml("plot", "144", "--group", "--json").out)["series"]
    assert series["points"][0] == [10, pytest.approx(0.15)]
    assert series["band"][0] == [10, 0.1, 0.2]
    assert riseml("plot", "144", "--group", "--svg", "a.svg", "--png", "a.png").code == 0
    drawn = ElementTree.parse(folder / "a.svg").getroot()  # a file of this test
    assert sum(element.tag.endswith("polygon") for element in drawn) == 1
    refused = riseml("plot", "144", "--group", "--against", "lr")
    assert "--group and --against exclude each other" in refused.err


def test_plot_draws_the_mean_of_each_value_of_a_parameter(
    riseml: Riseml, fake_server: FakeServer, folder: Path
) -> None:
    serve_plot(fake_server)
    group = {
        "label": "lr=0.1",
        "ids": ["144.1", "144.2"],
        "x": [1, 2],
        "n": [2, 1],
        "mean": [0.3, 0.6],
        "low": [0.2, 0.6],
        "high": [0.4, 0.6],
        "error": [0.1, None],
    }
    found = {"metric": "accuracy", "by": "lr", "x": "step", "total": 11, "groups": [group] * 11}
    fake_server.answers["GET /results/curves"] = (200, found)
    assert riseml("plot", "144", "--by", "lr").out.splitlines()[-1] == (
        "Means; --svg and --png draw bands. The first 10 of 11 groups"
    )
    assert "by=lr" in next(path for path in fake_server.asked if path.startswith("GET /results/curves"))
    (series, *_) = json.loads(riseml("plot", "144", "--by", "lr", "--json").out)["series"]
    assert series == {
        "label": "lr=0.1 (n = 1 to 2)",
        "points": [[1, 0.3], [2, 0.6]],
        "band": [[1, 0.2, 0.4], [2, 0.6, 0.6]],
    }
    (series, *_) = json.loads(riseml("plot", "144", "--by", "lr", "--band", "error", "--json").out)["series"]
    assert series["band"] == [[1, pytest.approx(0.2), pytest.approx(0.4)], [2, 0.6, 0.6]]
