"""`compare`, with the fake server."""

from __future__ import annotations

import json

import pytest

from tests.unit.cli.comparisons import FOUND
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer


def test_the_differences_are_listed_by_subject(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["GET /comparison"] = (200, FOUND)
    result = riseml("compare", "4", "paul.7")
    assert fake_server.asked[-1] == "GET /comparison?of=4&of=paul.7"
    assert result.out.splitlines() == [
        "ID  PROJECT  STATE     STARTED               TIME",
        "4   toaster  FINISHED  2026-08-31T07:23:46Z  2h00m",
        "7   toaster  RUNNING   2026-08-31T07:23:46Z  3m20s",
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
        "          4     7",
        "accuracy  0.25  0.75",
        "loss      -     0.333333",
        "",
        "Code",
        "added     data.py",
        "removed   old.py",
        "changed   train.py",
        "",
        "The same: Environment.",
    ]
    assert json.loads(riseml("compare", "4", "7", "--json").out) == FOUND
    every = riseml("compare", "4", "7", "--all").out.splitlines()
    assert every[every.index("Metrics") + 1 :][:4] == [
        "               4     7",
        "accuracy.last  0.25  0.75",
        "accuracy.max   0.5   0.75",
        "loss.last      -     0.333333",
    ]


@pytest.mark.parametrize("words", [["4", "7", "--all", "--json"], ["4", "--all"], ["4", "7", "--all=max"]])
def test_a_wrong_use_of_all_is_refused(riseml: Riseml, fake_server: FakeServer, words: list[str]) -> None:
    result = riseml("compare", *words)
    assert (result.code, result.out) == (2, "")
    assert '"fix": "leave' in result.err or "hint: " in result.err
    assert fake_server.asked == []


@pytest.mark.parametrize(
    ("words", "message"),
    [(["4"], "there is one ID, and compare takes 2 to 20"), (["4", "no/way"], "'no/way' is not an experiment ID")],
)
def test_a_wrong_use_is_refused_without_a_server(
    riseml: Riseml, fake_server: FakeServer, words: list[str], message: str
) -> None:
    result = riseml("compare", *words)
    assert (result.code, fake_server.asked) == (2, [])
    assert message in result.err
