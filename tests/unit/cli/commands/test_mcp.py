"""`riseml mcp`, as a user starts it by hand."""

from __future__ import annotations

import pytest

from tests.unit.cli.conftest import Riseml
from tests.unit.cli.programs import run_program

CALL = "import sys\nfrom riseml.cli.main import execute\n"


def test_a_missing_package_says_how_to_install_it() -> None:
    code, out, err = run_program("sys.modules['mcp'] = None\nsys.exit(execute(['mcp']))", CALL)
    assert (code, out) == (2, "")
    assert "needs the package mcp" in err and "pip install 'riseml[mcp]'" in err


def test_on_a_terminal_it_says_where_it_belongs(riseml: Riseml, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    result = riseml("mcp")
    assert (result.code, result.out) == (2, "")
    assert "`claude mcp add riseml -- riseml mcp`" in result.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--experiments -1", "-1 is not in the range 0 to 100,000"),
        ("--experiments many", "'many' is not a whole number"),
        ("--gpu-hours -1", "-1.0 is less than 0"),
        ("--gpu-hours much", "'much' is not a number"),
        ("--gpu-hours nan", "--gpu-hours is nan"),
        ("now", "unexpected extra argument"),
        ("--stop-any=yes", "does not take a value"),
    ],
)
def test_wrong_options_are_wrong_usage(riseml: Riseml, words: str, said: str) -> None:
    result = riseml("mcp", *words.split())
    assert (result.code, result.out) == (2, "")
    assert said in result.err
