"""A capsule for people: one line for each subject that it has, without foreign control characters."""

from __future__ import annotations

from typing import Any

import pytest

from riseml import wire
from riseml.cli.output.capsule_view import list_capsule
from tests.unit.planning.test_capsule import capsule_of, make


def read_lines(capsule: wire.Capsule) -> dict[str, str]:
    """Return the lines by their subjects; of several about one subject, the first."""
    rows = [line.partition(":") for line in list_capsule(capsule)]
    return {name: text.strip() for name, _, text in reversed(rows)}


def test_each_subject_of_a_capsule_has_a_line() -> None:
    lines = read_lines(capsule_of(make()))
    assert lines["experiment"].startswith("4 of ")
    assert lines["repeats"] == "3"
    assert lines["seeds"] == "seed=42, SEED=42"
    assert lines["code"].startswith("abababababab, in the output; git aaaaaaaaaaaa, clean")
    assert "TOKEN (passed on)" in lines["variables"]
    assert lines["packages"] == "numpy==2.0"
    assert "results" not in lines, "nothing was reported"


def test_many_packages_are_counted() -> None:
    capsule = capsule_of(make())
    capsule["environments"][0]["packages"] = [f"p{number}==1" for number in range(11)]
    assert read_lines(capsule)["packages"].endswith("p7==1 and 3 others")


@pytest.mark.parametrize(
    ("git", "said"),
    [
        (None, "abababababab, in the output"),
        ({"clean": False}, "with changes"),
        ({"clean": None}, "not known whether it was clean"),
        ({"clean": True, "missing": ["a.py"]}, "without a.py"),
    ],
    ids=["no repository", "changes", "unknown", "left out"],
)
def test_the_code_says_how_it_differs_from_its_commit(git: dict[str, Any] | None, said: str) -> None:
    capsule: Any = capsule_of(make())
    capsule["code"]["git"] = None if git is None else {"revision": "a" * 40, **git}
    assert read_lines(capsule)["code"].endswith(said)


def test_a_capsule_that_any_person_may_have_written_rewrites_no_terminal() -> None:
    capsule = capsule_of(make())
    capsule["project"] = "\x1b[2Jtoaster\x07"
    capsule["parameters"] = {"lr\n": "\u202e1"}
    assert not any(set(line) & set("\x1b\x07\n\u202e") for line in list_capsule(capsule))
