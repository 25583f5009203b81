"""`audit`: the lines of a team's server as a table, and the check of the whole log."""

from __future__ import annotations

import json

import pytest

from riseml import wire
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer

HASH = "0f" * 32


def make_line(number: int, result: str, of: int | None = None, user: str = "paul") -> wire.AuditLineView:
    return {
        "number": number,
        "at": "2026-11-28T12:00:04Z",
        "user": user,
        "key": user and "k7",
        "address": "10.0.0.17",
        "request": "POST /v1/experiments/4/kill",
        "result": result,
        "of": of,
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--since soon", "--since 'soon' is not a time"),
        ("-n 0", "0 is not in the range"),
        ("-n all", "'all' is not a whole number"),
        ("--user", "requires an argument"),
        ("paul", "no such command 'paul'"),
        ("verify --head 41", "--head '41' is no line and hash"),
        (f"verify --head 0:{HASH}", "is no line and hash"),
        (f"verify --head 41:{HASH}0", "is no line and hash"),
        ("verify 41", "unexpected extra argument"),
    ],
)
def test_a_wrong_call_says_what_is_wrong_and_asks_nothing(
    riseml: Riseml, fake_server: FakeServer, words: str, said: str
) -> None:
    result = riseml("audit", *words.split())
    assert result.code == 2
    assert said in result.err.lower() or said in result.err
    assert not any("/audit" in question for question in fake_server.asked)


def test_lines_are_printed_in_the_order_in_which_they_were_written(riseml: Riseml, fake_server: FakeServer) -> None:
    lines = [make_line(43, "refused 401", user=""), make_line(42, "done 200", 41), make_line(41, "begun")]
    fake_server.answers["GET /audit"] = (200, {"lines": lines})
    printed = riseml("audit", "--user", "paul", "--since", "1h", "-n", "3").out.splitlines()
    assert printed[0].split() == ["LINE", "AT", "USER", "KEY", "ADDRESS", "REQUEST", "RESULT"]
    assert [line.split()[0] for line in printed[1:]] == ["41", "42", "43"]
    assert printed[2].endswith("POST /v1/experiments/4/kill  done 200 (line 41)")
    assert "  -     -    10.0.0.17" in printed[3]
    assert json.loads(riseml("audit", "--json").out)["lines"] == lines


def test_a_log_without_such_lines_says_so(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["GET /audit"] = (200, {"lines": []})
    assert riseml("audit").out == "The audit log has no such line.\n"


def test_a_whole_log_names_its_last_line(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["GET /audit/check"] = (200, {"number": 43, "hash": HASH, "problem": ""})
    told = f"The audit log is whole: lines 1 to 43.\nLast line: 43:{HASH}\n"
    assert riseml("audit", "verify").out == told
    assert riseml("audit", "verify", "--head", f"41:{HASH}").out == told
    fake_server.answers["GET /audit/check"] = (200, {"number": 0, "hash": "0" * 64, "problem": ""})
    assert riseml("audit", "verify").out == "The audit log is whole. It has no line yet.\n"


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_a_changed_log_is_an_error(riseml: Riseml, fake_server: FakeServer, words: list[str]) -> None:
    problem = "line 43 was changed, or the line before it"
    fake_server.answers["GET /audit/check"] = (200, {"number": 42, "hash": HASH, "problem": problem})
    result = riseml("audit", "verify", *words)
    assert result.code == 4
    assert f"the audit log is not what the server wrote: {problem}" in result.err
    assert "lines 1 to 42 are right" in result.err
    assert (json.loads(result.out)["problem"] == problem) if words else not result.out
