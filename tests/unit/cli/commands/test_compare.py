"""`compare`: the command with the fake server, and its view at every width."""

from __future__ import annotations

import json

import pytest

from riseml import wire
from riseml.cli.output.comparison_view import list_comparison
from riseml.cli.output.style import Style
from riseml.cli.output.widths import measure_width
from tests.unit.cli.commands.test_results import make_metric
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import NOW, FakeServer

FOUND: wire.ComparisonView = {
    "experiments": [
        {
            "id": "4",
            "project": "toaster",
            "state": "FINISHED",
            "started_at": NOW,
            "ended_at": "2026-08-31T09:23:46Z",
            "seconds": 7200.0,
        },
        {
            "id": "7",
            "project": "toaster",
            "state": "RUNNING",
            "started_at": NOW,
            "ended_at": None,
            "seconds": 200.5,
        },
    ],
    "parameters": [{"name": "lr", "values": ["0.1", "0.01"]}, {"name": "depth", "values": [None, "3"]}],
    "config": [
        {"name": "resources.cpus", "values": ["1", "2"]},
        {"name": "run", "values": ["python train.py", "python prepare.py\npython train.py --with 日本 " + "x" * 90]},
    ],
    "environment": [],
    "code": [
        {"path": "data.py", "versions": [None, "1f"]},
        {"path": "old.py", "versions": ["2f", None]},
        {"path": "train.py", "versions": ["2f", "3f"]},
    ],
    "metrics": [
        {"name": "accuracy", "metrics": [make_metric("accuracy", 0.5, 0.25), make_metric("accuracy", 0.75)]},
        {"name": "loss", "metrics": [None, make_metric("loss", 1 / 3)]},
    ],
    "code_unknown": [],
}


def test_the_differences_are_listed_by_subject(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["GET /comparison"] = (200, FOUND)
    result = riseml("compare", "4", "paul.7")
    assert fake_server.asked[1:] == ["GET /comparison?of=4&of=paul.7"]
    assert result.out.splitlines() == [
        "ID  PROJECT  STATE     STARTED               TIME",
        "4   toaster  FINISHED  2026-08-31T07:23:46Z  2 hours",
        "7   toaster  RUNNING   2026-08-31T07:23:46Z  3 minutes",
        "",
        "Parameters",
        "       4    7",
        "lr     0.1  0.01",
        "depth  -    3",
        "",
        "riseml.yml, as resolved",
        "                4  7",
        "resources.cpus  1  2",
        "run:",
        "  4  python train.py",
        "  7  python prepare.py",
        "     python train.py --with 日本",
        f"     {'x' * 75}",
        f"     {'x' * 15}",
        "",
        "Metrics",
        "               4     7",
        "accuracy.last  0.25  0.75",
        "accuracy.max   0.5   0.75",
        "loss.last      -     0.333333",
        "",
        "Code",
        "added     data.py",
        "removed   old.py",
        "changed   train.py",
        "",
        "The same: Environment.",
    ]
    assert json.loads(riseml("compare", "4", "7", "--json").out) == FOUND


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


@pytest.mark.parametrize(
    ("words", "message"),
    [(["4"], "there is one ID, and compare takes 2 to 20"), (["4", "no way"], "'no way' is not an experiment ID")],
)
def test_a_wrong_use_is_refused_without_a_server(
    riseml: Riseml, fake_server: FakeServer, words: list[str], message: str
) -> None:
    result = riseml("compare", *words)
    assert (result.code, fake_server.asked) == (2, [])
    assert message in result.err
