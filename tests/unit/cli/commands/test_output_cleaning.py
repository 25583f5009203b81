"""`system clean --outputs` and `keep`: which outputs are removed, after a yes, and which are kept."""

from __future__ import annotations

import json
from typing import Any

import pytest

from riseml.base.errors import UsageError
from riseml.cli.commands.output_cleaning import OutputChoice
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer

CHOICE = ("system", "clean", "--outputs", "--project", "toaster")


def make_output(identity: str, **changes: Any) -> dict[str, Any]:
    shape = {"experiment": identity, "project": "toaster", "ended_at": "2026-08-31T07:23:46Z", "size": 1_000}
    return {**shape, "files": 2, "removed": False, "problem": None, **changes}


def serve_outputs(fake_server: FakeServer, *outputs: dict[str, Any]) -> None:
    fake_server.answers["GET /outputs"] = (200, {"outputs": list(outputs), "next": None, "next_sub": None})


@pytest.mark.parametrize(
    ("choice", "query"),
    [
        (OutputChoice(older="30d"), {"older": "2592000"}),
        (OutputChoice(larger="1GiB"), {"larger": "1073741824"}),
        (OutputChoice(older="1h", project="x"), {"older": "3600", "project": "x"}),
    ],
    ids=["older", "larger", "both"],
)
def test_what_a_user_types_becomes_the_query(choice: OutputChoice, query: dict[str, str]) -> None:
    assert choice.to_query() == query


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (OutputChoice(), "--outputs alone would remove every output"),
        (OutputChoice(older=""), "--older is empty"),
        (OutputChoice(project="  "), "--project is empty"),
        (OutputChoice(older="soon"), "--older"),
        (OutputChoice(larger="7"), "--larger 7 has no unit"),
        (OutputChoice(larger="much"), "--larger 'much'"),
    ],
    ids=["none", "empty", "blank", "no time", "no unit", "no size"],
)
def test_a_choice_that_may_mean_every_output_is_refused(choice: OutputChoice, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        choice.to_query()


def test_nothing_is_removed_without_a_yes(riseml: Riseml, fake_server: FakeServer) -> None:
    serve_outputs(fake_server, make_output("4"))
    done = riseml(*CHOICE)
    assert (done.code, "Nothing was removed: add --yes to remove it." in done.err) == (0, True)
    assert json.loads(riseml(*CHOICE, "--json").out)["outputs"] == [make_output("4")]
    assert not any("remove" in question for question in fake_server.asked)


def test_a_large_output_takes_several_requests(riseml: Riseml, fake_server: FakeServer) -> None:
    serve_outputs(fake_server, make_output("4"), make_output("5"))
    fake_server.answers["POST /experiments/4/output/remove"] = (200, make_output("4", removed=True))
    fake_server.answers["POST /experiments/5/output/remove"] = (200, make_output("5", files=0))
    done = riseml(*CHOICE, "--yes")
    assert (done.code, "output 5: it is not removed completely" in done.err) == (5, True), done.err
    fake_server.asked.clear()
    fake_server.refuse("POST /experiments/5/output/remove", "Refused", "it is kept", exit_code=4, status=403)
    assert "output 5: it is kept" in riseml(*CHOICE, "--yes").err
    assert "POST /experiments/4/output/remove" in fake_server.asked


def test_an_output_that_could_not_be_measured_stays(riseml: Riseml, fake_server: FakeServer) -> None:
    serve_outputs(fake_server, make_output("4", problem="its folder cannot be read"), make_output("5"))
    fake_server.answers["POST /experiments/5/output/remove"] = (200, make_output("5", removed=True))
    done = riseml(*CHOICE, "--yes")
    assert (done.code, "output 4: its folder cannot be read" in done.err) == (5, True)
    removals = [question for question in fake_server.asked if question.endswith("/remove")]
    assert removals == ["POST /experiments/5/output/remove"]


def test_outputs_are_kept_and_released(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["GET /kept"] = (200, {"kept": []})
    fake_server.answers["POST /experiments/4/keep"] = (200, {"kept": ["4", "7\x1b[2J"]})
    assert riseml("keep").out == "No output is kept.\n"
    assert riseml("keep", "4").out == "Kept: 4, 7\n"
    assert fake_server.asked[-1] == "POST /experiments/4/keep?keep=true"
    riseml("keep", "--no", "4")
    assert fake_server.asked[-1] == "POST /experiments/4/keep?keep=false"
    assert riseml("keep", "--no").code == 2
