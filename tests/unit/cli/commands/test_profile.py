"""What `profile` and `stacks` refuse before they ask a server, and how a profile is printed."""

from __future__ import annotations

import pytest

from riseml import wire
from riseml.cli.output.stacks_view import list_profile
from riseml.cli.output.style import Style
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer

PROFILE: wire.ProfileView = {
    "id": "4.train",
    "time": "2026-11-29T02:22:26Z",
    "seconds": 3,
    "rate": 100,
    "samples": 159,
    "errors": 2,
    "overhead": 5.12,
    "top": [{"call": "load (data.py:3)\x1b[2J", "own": 97.5, "total": 100.0}],
    "flame_graph": "",
    "speedscope": {},
}


def test_a_profile_has_its_hot_lines_its_cost_and_its_files() -> None:
    assert list_profile(PROFILE, ["output://4/profiles/train.svg"], Style()) == [
        "  OWN   TOTAL  LINE",
        "97.5%  100.0%  load (data.py:3)",
        "",
        "159 samples in 3 s, 2 of them not readable; sampling took 5.1 % of one core",
        "Saved output://4/profiles/train.svg",
    ]
    nothing: wire.ProfileView = {**PROFILE, "top": []}
    assert "`--idle` counts threads that wait" in list_profile(nothing, [], Style())[0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("profile 4 --seconds 0", "0 is not in the range 1 to 90"),
        ("profile 4 --seconds 91", "91 is not in the range 1 to 90"),
        ("profile 4 --seconds soon", "'soon' is not a whole number"),
        ("profile 4 --rate 0", "0 is not in the range 1 to 1000"),
        ("profile 4 --rate 5000", "5000 is not in the range 1 to 1000"),
        ("profile 4 --rate often", "'often' is not a whole number"),
        ("profile 4x", "'4x' is not an experiment ID"),
        ("stacks 4x", "'4x' is not an experiment ID"),
        ("stacks 4 7", "unexpected extra argument"),
        ("stacks 4 --local", "no such option"),
    ],
)
def test_a_wrong_call_says_what_is_wrong_and_reads_no_job(
    riseml: Riseml, fake_server: FakeServer, words: str, said: str
) -> None:
    result = riseml(*words.split())
    assert result.code == 2
    assert said in result.err or said in result.err.lower()
    assert not any("/stacks" in question or "/profile" in question for question in fake_server.asked)
