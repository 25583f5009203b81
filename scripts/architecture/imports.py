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
    """Return how often the children of a package import each other. A child whose own parts are on several layers of
    the contract stands for none: its parts do (`files.storage`).

    Example:
        count_imports("riseml").counts["server", "store"]
    """
    graph = _read_graph()
    counts: Counter[tuple[str, str]] = Counter()
    divided = _list_divided(package)
    for importer in sorted(graph.modules):
        source = _find_child(package, importer, divided)
        for imported in graph.find_modules_directly_imported_by(importer) if source else ():
            target = _find_child(package, imported, divided)
            if target and target != source:
                counts[source, target] += 1
    children = sorted({name for name in (_find_child(package, module, divided) for module in graph.modules) if name})
    return PackageImports(package, tuple(children), counts)


def _list_divided(package: str) -> frozenset[str]:
    """Return the children of a package whose own parts are on several layers of its contract."""
    if _find_layers(package) is None:
        return frozenset()
    return frozenset(name.split(".")[0] for layer in read_layers(package) for name in layer if "." in name)


def _find_child(package: str, module: str, divided: frozenset[str]) -> str:
    """Return the child of `package` that is or holds `module`; empty: none does."""
    if not module.startswith(package + "."):
        return ""
    parts = module.removeprefix(package + ".").split(".")
    return parts[0] if parts[0] not in divided else ".".join(parts[:2]) if len(parts) > 1 else ""


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
    layers = _find_layers(package)
    if layers is None:
        raise LookupError(f"no contract has the layers of {package}")
    return [[name.removeprefix("riseml.") for name in re.split(r"\s*[|:]\s*", layer)] for layer in layers]


def _find_layers(package: str) -> list[str] | None:
    tables = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for contract in tables["tool"]["importlinter"]["contracts"]:
        if contract["type"] == "layers" and contract.get("containers", ["riseml"]) == [package]:
            return list(contract["layers"])
    return None


def derive_layers(imports: PackageImports, names: frozenset[str]) -> list[list[str]]:
    """Return these children in layers, from the top down: each one below all that import it."""
    depth = dict.fromkeys(sorted(names), 0)
    edges = [edge for edge in sorted(imports.counts) if names.issuperset(edge)]
    for _ in names:
        for source, target in edges:
            depth[target] = max(depth[target], depth[source] + 1)
    return [[name for name in depth if depth[name] == row] for row in range(max(depth.values()) + 1)]
