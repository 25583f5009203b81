"""`search`: what it asks of the server, what it says, and the sentences of wrong calls."""

from __future__ import annotations

import json

import pytest

from riseml import wire
from riseml.cli.commands.search import describe_changed_set
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer, make_experiment, make_search


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("144", "nothing to change: give --pause, --resume, --stop or --concurrency N"),
        ("x/y --pause", "'x/y' is not an experiment ID"),
        ("--pause", "missing argument 'ID'"),
        ("144 --pause=yes", "does not take a value"),
        ("144 --pause --resume", "--pause and --resume do not go together"),
        ("144 --resume=no", "does not take a value"),
        ("144 --resume --stop", "--resume and --stop do not go together"),
        ("4..1 --resume", "is not an experiment ID"),
        ("144 --stop 3", "unexpected extra argument"),
        ("144 --pause --stop", "--pause and --stop do not go together"),
        ("144 --stop --concurrency 2", "--stop and --concurrency do not go together"),
        ("144 --concurrency 0", "0 is not in the range"),
        ("144 --concurrency 10001", "10001 is not in the range"),
        ("144 --concurrency many", "'many' is not a whole number"),
    ],
)
def test_a_wrong_call_says_what_is_wrong_and_asks_nothing(
    riseml: Riseml, fake_server: FakeServer, words: str, said: str
) -> None:
    result = riseml("search", *words.split())
    assert (result.code, said in result.err) == (2, True), result.err
    assert not any(question.startswith("POST") for question in fake_server.asked)


def test_a_change_is_asked_for_and_named(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["POST /experiments/144/search"] = (200, make_set(["RUNNING", "PENDING"], reason="PAUSED"))
    result = riseml("search", "144", "--pause", "--concurrency", "3")
    assert result.out == (
        "Set 144 runs 3 at the same time; is paused; 1 experiment of it runs on; "
        "`riseml search 144 --resume` lets it go on.\n"
    )
    assert json.loads(riseml("search", "144", "--pause", "--json").out)["id"] == "144"


@pytest.mark.parametrize(
    ("states", "reason", "change", "text"),
    [
        (["RUNNING"], "RUNNING", {"paused": False}, "Set 144 goes on."),
        (["RUNNING"], "RUNNING", {"concurrency": 4}, "Set 144 runs 4 at the same time."),
        (
            ["RUNNING"],
            "RUNNING",
            {"paused": False, "concurrency": 4},
            "Set 144 runs 4 at the same time and goes on.",
        ),
        (
            ["RUNNING", "STARTING"],
            "RUNNING",
            {"stop": True},
            "Set 144 starts nothing further; 2 experiments of it run on.",
        ),
        (["FINISHED", "PENDING"], "NO_ROOM", {"stop": True}, "Set 144 starts nothing further."),
        (["FINISHED"], "COMPLETED", {"stop": True}, "Set 144 has already ended: FINISHED."),
    ],
)
def test_the_sentence_says_what_follows(states: list[str], reason: str, change: dict[str, object], text: str) -> None:
    request = {"paused": None, "concurrency": None, "stop": False, **change}
    assert describe_changed_set(make_set(states, reason=reason), request) == text  # type: ignore[arg-type]  # by name


def test_a_search_between_two_trials_has_not_ended() -> None:
    between = make_set(["FINISHED"], search=make_search(end=None))
    request: wire.SetChangeRequest = {"paused": None, "concurrency": None, "stop": True}
    assert describe_changed_set(between, request) == "Set 144 starts nothing further."


def make_set(states: list[str], **changes: object) -> wire.ExperimentView:
    members = [make_experiment(f"144.{number}", state=state) for number, state in enumerate(states, 1)]
    state = "FINISHED" if set(states) == {"FINISHED"} else "RUNNING"
    return make_experiment("144", type="set", state=state, jobs=[], experiments=members, **changes)
