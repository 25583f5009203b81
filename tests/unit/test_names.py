"""Names can be searched for, and files and functions stay short: what ruff does not check."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

ROOT = Path(__file__).parents[2]
MOST_LINES_OF_A_FUNCTION = 40
MOST_LINES_OF_A_FILE = 399
_LONG_BY_NATURE = ("riseml/store/migrations/versions/",)  # a migration lists every table and never changes

Node = TypeVar("Node", bound=ast.AST)


def _find_sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def _find_nodes(kind: type[Node], *folders: str) -> Iterator[tuple[str, Node]]:
    """Give each node of this kind with the path of its file below the repository."""
    for path in _find_sources(*folders):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, kind):
                yield str(path.relative_to(ROOT)), node


def test_no_two_classes_have_one_name() -> None:
    places: dict[str, list[str]] = {}
    for path, node in _find_nodes(ast.ClassDef, "riseml", "benchmarks"):
        places.setdefault(node.name.lstrip("_"), []).append(f"{path}:{node.lineno}")
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


@pytest.mark.parametrize("kind", [ast.FunctionDef, ast.AsyncFunctionDef])
def test_no_function_is_long(kind: type[ast.FunctionDef] | type[ast.AsyncFunctionDef]) -> None:
    long = {
        f"{path}:{node.name}": length
        for path, node in _find_nodes(kind, "riseml")
        if not path.startswith(_LONG_BY_NATURE)
        and (length := (node.end_lineno or node.lineno) - node.lineno + 1) > MOST_LINES_OF_A_FUNCTION
    }
    assert long == {}


def test_no_file_is_long() -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in _find_sources("riseml", "tests")
    }
    assert {path: length for path, length in lengths.items() if length > MOST_LINES_OF_A_FILE} == {}
