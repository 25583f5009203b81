"""Names can be searched for, and files and functions have a limit: what ruff does not check."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
_GLOBAL_CLOCK = re.compile(
    r"""setattr\((?:f?["']time\.(?:(?:time|monotonic)["']|\{)|time, ["'](?:time|monotonic)["'])"""
)
MOST_LINES_OF_A_FUNCTION = 70
MOST_LINES_OF_A_FILE = 800
MOST_FILES_THAT_NAME_A_KIND = 10
"""The settings, the options and the sections of pool.yml in which a user names it, and `executors.kinds`."""

_CLUSTER_KIND = re.compile(r"\bslurm\b", re.IGNORECASE)
_LONG_BY_NATURE = ("riseml/store/migrations/versions/",)  # a migration lists every table and never changes


class Definition(NamedTuple):
    """A class or a function of the sources."""

    path: str  # of its file, below the repository
    name: str
    line: int
    length: int  # lines
    is_class: bool


def _find_sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


@pytest.fixture(scope="module")
def definitions() -> list[Definition]:
    return [
        Definition(
            str(path.relative_to(ROOT)),
            node.name,
            node.lineno,
            (node.end_lineno or node.lineno) - node.lineno + 1,
            isinstance(node, ast.ClassDef),
        )
        for path in _find_sources("riseml", "benchmarks")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def test_no_two_classes_have_one_name(definitions: list[Definition]) -> None:
    places: dict[str, list[str]] = {}
    for one in definitions:
        if one.is_class:
            places.setdefault(one.name.lstrip("_"), []).append(f"{one.path}:{one.line}")
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_function_is_long(definitions: list[Definition]) -> None:
    long = {
        f"{one.path}:{one.name}": one.length
        for one in definitions
        if one.path.startswith("riseml/")
        and not one.is_class
        and not one.path.startswith(_LONG_BY_NATURE)
        and one.length > MOST_LINES_OF_A_FUNCTION
    }
    assert long == {}


def test_no_file_is_long() -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in _find_sources("riseml", "tests")
    }
    assert {path: length for path, length in lengths.items() if length > MOST_LINES_OF_A_FILE} == {}


def test_few_files_name_a_kind_of_executor_outside_its_package() -> None:
    """The others say what a host can do: another kind then changes its own package and `executors.kinds`."""
    own = ROOT / "riseml/executors/slurm"
    named = [
        str(path.relative_to(ROOT))
        for path in _find_sources("riseml")
        if own not in path.parents and _CLUSTER_KIND.search(path.read_text(encoding="utf-8"))
    ]
    assert len(named) <= MOST_FILES_THAT_NAME_A_KIND, named


def test_no_test_sets_the_clock_of_its_whole_process() -> None:
    """Event loops of servers that other tests have started would sleep until that clock comes, in one worker."""
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in _find_sources("tests")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if _GLOBAL_CLOCK.search(line)
    ]
    assert found == []
