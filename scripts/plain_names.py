"""Refuse variables that do not name what they hold, and packed assignments: `python -m scripts.plain_names`.

A variable is the noun of what it holds: `host`, `experiments`, `container`. A filler such as `found` or `one` says
nothing about its value, so that a reader has to look its type up. Two values that have nothing to do with each other
get a line each; swaps, and tuples that a function returns, are one value.

A line that has a reason says it: `# names: the words of RFC 9110`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
ROOMS = ("riseml", "benchmarks", "scripts")
"""The folders that hold the rules."""

FILLERS = frozenset(
    {
        "asked",
        "done",
        "found",
        "given",
        "gone",
        "held",
        "here",
        "kept",
        "known",
        "made",
        "meant",
        "mine",
        "one",
        "others",
        "ours",
        "rest",
        "said",
        "seen",
        "shown",
        "taken",
        "theirs",
        "there",
        "told",
        "wanted",
        "what",
    }
)
REASON = "# names: "


class Breach(NamedTuple):
    """A line that breaks a rule."""

    line: int
    problem: str


def main(folders: Sequence[str]) -> int:
    """Print every breach in these folders, and return 1 when there is one."""
    breaches = [
        f"{path.relative_to(ROOT)}:{breach.line}: {breach.problem}"
        for folder in folders
        for path in _find_sources(ROOT / folder)
        for breach in find_breaches(path.read_text(encoding="utf-8"))
    ]
    print("\n".join(breaches), end="\n" if breaches else "")
    return 1 if breaches else 0


def find_breaches(source: str) -> list[Breach]:
    """Return the lines of a module that break a rule and have no reason, in their order."""
    lines = source.splitlines()
    breaches = {breach for node in ast.walk(ast.parse(source)) for breach in _check_node(node)}
    return sorted(breach for breach in breaches if REASON not in lines[breach.line - 1])


def _find_sources(place: Path) -> list[Path]:
    return [place] if place.is_file() else sorted(place.rglob("*.py"))


def _check_node(node: ast.AST) -> Iterator[Breach]:
    match node:
        case (
            ast.Name(id=str(name), ctx=ast.Store())
            | ast.arg(arg=str(name))
            | ast.ExceptHandler(name=str(name))
            | ast.MatchAs(name=str(name))
            | ast.MatchStar(name=str(name))
        ):
            if name.strip("_") in FILLERS:
                yield Breach(node.lineno, f"`{name}` does not say what it holds")
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            if not _is_swap(targets, values):
                yield Breach(node.lineno, "values packed into one assignment")


def _is_swap(targets: Sequence[ast.expr], values: Sequence[ast.expr]) -> bool:
    """Return true when a value reads a variable that the assignment sets for another one: `a, b = b, a + b`."""
    names = [ast.unparse(target) for target in targets]
    return any(
        ast.unparse(node) in {*names} - {name}
        for name, value in zip(names, values, strict=True)
        for node in ast.walk(value)
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ROOMS))
