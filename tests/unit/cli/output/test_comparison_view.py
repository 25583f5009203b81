"""The differences between experiments as lines, at every width."""

from __future__ import annotations

import pytest

from riseml import wire
from riseml.cli.output.comparison_view import list_comparison
from riseml.cli.output.style import Style
from riseml.cli.output.widths import measure_width
from tests.unit.cli.comparisons import FOUND
from tests.unit.cli.result_rows import make_metric


def test_several_experiments_have_a_column_each() -> None:
    three: wire.ComparisonView = {
        **FOUND,
        "experiments": [FOUND["experiments"][0], *FOUND["experiments"]],
        "parameters": [],
        "config": [],
        "metrics": [],
        "code": [{"path": "a.py", "versions": ["0123456789ab", None, "x123456789ab"]}],
        "code_unknown": ["7"],
    }
    lines = list_comparison(three, Style(width=80))
    assert "a.py  0123456  -  x123456" in lines
    assert "not compared: the project's files of 7 are not on the server any more" in lines
    assert lines[-1] == "The same: Parameters, riseml.yml, Environment, Metrics."


@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize("width", [40, 80, 200, None])
def test_the_view_fits_and_shows_no_foreign_control_characters(width: int | None, *, colour: bool) -> None:
    bad = "\x1b[2J\x07\u202e"
    hostile: wire.ComparisonView = {
        **FOUND,
        "experiments": [{**one, "id": f"{one['id']}{bad}", "project": f"p{bad}"} for one in FOUND["experiments"]],
        "parameters": [{"name": f"{bad}lr", "values": [f"{bad}1", "y" * 300]}],
        "code": [{"path": f"{bad}{'/deep' * 60}", "versions": [bad, None]}],
        "code_unknown": [bad],
    }
    for found in (FOUND, hostile):
        lines = list_comparison(found, Style(colour, width))
        plain = [line.replace("\x1b[1m", "").replace("\x1b[1;32m", "").replace("\x1b[0m", "") for line in lines]
        assert not any("\x1b" in line or "\x07" in line or "\u202e" in line for line in plain)
        if width is not None and found is FOUND:
            assert max(map(measure_width, plain)) <= width
        if width == 80:
            assert max(map(measure_width, plain[4:])) <= 80


def test_no_two_metrics_have_one_row() -> None:
    names = ("g", "g.last")
    found: wire.ComparisonView = {
        **FOUND,
        "metrics": [{"name": name, "metrics": [make_metric(name, 1.0), make_metric(name, 2.0)]} for name in names],
    }
    for every, expected in ((True, ['"g".last', "g.last.last"]), (False, ["g", "g.last"])):
        lines = list_comparison(found, Style(), every=every)
        titles = [line.split()[0] for line in lines if line.split()[1:] == ["1", "2"]]
        assert titles[-2:] == expected


def test_a_metric_that_is_the_same_has_no_row() -> None:
    same = {**FOUND, "metrics": [{"name": "loss", "metrics": [make_metric("loss", 3, 1.0), make_metric("loss", 1.0)]}]}
    assert not any(line.startswith("loss") for line in list_comparison(same, Style()))  # type: ignore[arg-type]  # a copy with other metrics
    every = list_comparison(same, Style(), every=True)  # type: ignore[arg-type]  # as above
    assert [line.split()[0] for line in every if line.startswith("loss")] == ["loss.last", "loss.max"]
