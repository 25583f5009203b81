"""The import graph of riseml, as grimp reads it (import-linter brings grimp), and what docstrings say."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class PackageImports:
    """The children of one package, and which of them imports which."""

    package: str  # `riseml.server`
    children: tuple[str, ...]  # names of its modules and packages, sorted
    counts: Mapping[tuple[str, str], int]  # (importer, imported) -> imports from module to module


@cache
def _read_graph() -> grimp.ImportGraph:
    return grimp.build_graph("riseml", cache_dir=None)


def count_imports(package: str) -> PackageImports:
    """Return how often the children of a package import each other.

    Example:
        count_imports("riseml").counts["server", "store"]
    """
    graph = _read_graph()
    counts: Counter[tuple[str, str]] = Counter()
    for importer in sorted(graph.modules):
        source = _child_of(package, importer)
        for imported in graph.find_modules_directly_imported_by(importer) if source else ():
            target = _child_of(package, imported)
            if target and target != source:
                counts[source, target] += 1
    children = sorted({name for name in (_child_of(package, module) for module in graph.modules) if name})
    return PackageImports(package, tuple(children), counts)


def _child_of(package: str, module: str) -> str:
    """Return the child of `package` that is or holds `module`; empty: none does."""
    if not module.startswith(package + "."):
        return ""
    return module.removeprefix(package + ".").split(".")[0]


def list_modules(package: str) -> tuple[str, ...]:
    """Return the names of the modules directly in a package, sorted; none for a module."""
    return tuple(sorted(child.rsplit(".", 1)[1] for child in _read_graph().find_children(package)))


def read_summary(module: str) -> str:
    """Return the first sentence of a module's docstring, without its marks of code."""
    path = ROOT / Path(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    first = (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")[0]
    sentence = re.split(r"(?<=[\w)`])\. (?=[A-Z])", " ".join(first.split()))[0]
    return sentence.replace("`", "").rstrip(".")


def read_layers(package: str) -> list[list[str]]:
    """Return the layers of a package from its import-linter contract, from the top down."""
    tables = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for contract in tables["tool"]["importlinter"]["contracts"]:
        if contract["type"] == "layers" and contract.get("containers", ["riseml"]) == [package]:
            rows = [re.split(r"\s*[|:]\s*", layer) for layer in contract["layers"]]
            return [[name.removeprefix("riseml.") for name in row] for row in rows]
    raise LookupError(f"no contract has the layers of {package}")


def derive_layers(imports: PackageImports, names: frozenset[str]) -> list[list[str]]:
    """Return these children in layers, from the top down: each one below all that import it."""
    depth = dict.fromkeys(sorted(names), 0)
    edges = [edge for edge in sorted(imports.counts) if names.issuperset(edge)]
    for _ in names:
        for source, target in edges:
            depth[target] = max(depth[target], depth[source] + 1)
    return [[name for name in depth if depth[name] == row] for row in range(max(depth.values()) + 1)]
