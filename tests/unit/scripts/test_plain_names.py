"""The lint of names: which variables and assignments it refuses, and which it leaves."""

from __future__ import annotations

import pytest

from scripts.plain_names import find_breaches

NAMED = "`found` does not say what it holds"
PACKED = "values packed into one assignment"


@pytest.mark.parametrize(
    "source",
    [
        "found = read()",
        "for found in hosts: pass",
        "[found.name for found in hosts]",
        "def choose(found): pass",
        "def choose(*found): pass",
        "choose = lambda found: 1",
        "with open(path) as found: pass",
        "if found := read(): pass",
        "name, found = read()",
        "*found, last = read()",
        "_found = read()",
        "class Host:\n    found: int",
        "match host:\n    case Host(name=found): pass",
        "try: read()\nexcept OSError as found: pass",
    ],
)
def test_a_filler_is_no_name_wherever_it_is_bound(source: str) -> None:
    assert [breach.problem.replace("_found", "found") for breach in find_breaches(source)] == [NAMED]


@pytest.mark.parametrize("source", ["self.found = 1", "print(found)", "found(1)", "hosts.found = 2", "foundation = 1"])
def test_names_that_are_bound_elsewhere_and_longer_words_are_left(source: str) -> None:
    assert find_breaches(source) == []


@pytest.mark.parametrize(
    "source", ["a, b = 1, 2", "self.a, self.b = {}, []", "a, b, c = x.y, x.z, 3", "(a, b) = (c, d)", "a, b = a.c, 1"]
)
def test_packed_values_are_refused(source: str) -> None:
    assert [breach.problem for breach in find_breaches(source)] == [PACKED]


@pytest.mark.parametrize(
    "source", ["a, b = b, a", "low, high = high, low + high", "a, b = read()", "a = b, c", "x[0], x[1] = x[1], x[0]"]
)
def test_swaps_and_real_tuples_are_left(source: str) -> None:
    assert find_breaches(source) == []


def test_a_line_with_a_reason_is_left() -> None:
    assert find_breaches("found = read()  # names: the word of RFC 9110\none = 1") == [
        (2, "`one` does not say what it holds")
    ]
