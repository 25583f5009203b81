"""Nodes to values. A scalar is read by what its key wants: `1.10` is a text as a version and a number as cpus."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from riseml.spec.yaml.document import Node, Scalar, Sequence
from riseml.spec.yaml.problems import Path, Place, Problem, Severity, make_problem
from riseml.spec.yaml.scalars import BadText, boolean, number

Schema = Mapping[str, Any]
_UNSAFE = re.compile("[\0\ud800-\udfff]")


@dataclass(slots=True)
class Settled:
    """A value with the nodes that it came from. `bad` are the paths whose value cannot be used."""

    value: Any = None
    nodes: dict[Path, Node] = field(default_factory=dict)
    keys: dict[Path, Scalar] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    bad: set[Path] = field(default_factory=set)
    _wrong: set[str] = field(default_factory=set)

    def place(self, path: Path) -> Place:
        """Where a path stands: its value, or else the nearest section around it."""
        if path in self.nodes:
            return self.nodes[path].place
        return self.key_place(path[:-1]) if path else Place("riseml.yml")

    def key_place(self, path: Path) -> Place:
        """Where the key of a path stands, or its value when it has none."""
        return self.keys[path].place if path in self.keys else self.place(path)

    def value_at(self, path: Path) -> Any:
        """The value of a path; None when there is none, or none that can be used."""
        if () in self.bad:
            return None
        found = self.value
        for end, part in enumerate(path, 1):
            is_there = (
                part in found if isinstance(found, dict) else isinstance(found, list) and part in range(len(found))
            )
            if not is_there or path[:end] in self.bad:
                return None
            found = found[part]
        return found

    def add(self, problem: Problem) -> None:
        """Note a problem, unless its path has an error already: one wrong value breaks several rules at once."""
        if problem.path not in self._wrong:
            self.problems.append(problem)
        if problem.severity is Severity.ERROR:
            self._wrong.add(problem.path)

    def refuse(self, path: Path, problem: str, hint: str = "") -> None:
        """Note that the value at a path cannot be used."""
        self.bad.add(path)
        self.add(make_problem(self.place(path), path, problem, hint))

    def refuse_key(self, path: Path, problem: str, hint: str = "") -> None:
        """Note that the key at the end of a path should not be there, or that something is missing from it."""
        self.bad.add(path)
        self.add(make_problem(self.key_place(path), path, problem, hint))

    def warn(self, path: Path, problem: str, hint: str = "") -> None:
        """Note what is legal at a path and probably not meant."""
        self.add(make_problem(self.key_place(path), path, problem, hint, Severity.WARNING))


def settle(root: Node, schema: Schema, below: Callable[[Schema, str | int], Schema]) -> Settled:
    """Read a tree of nodes by a schema; `below` gives the schema of a key or an item."""
    settled = Settled()
    settled.value = _read(root, schema, (), settled, below)
    return settled


def _read(
    node: Node, schema: Schema, path: Path, settled: Settled, below: Callable[[Schema, str | int], Schema]
) -> Any:
    settled.nodes[path] = node
    if isinstance(node, Scalar):
        return _scalar(node, schema, path, settled)
    if isinstance(node, Sequence):
        inner = below(schema, 0)
        return [_read(item, inner, (*path, index), settled, below) for index, item in enumerate(node.items)]
    values: dict[str, Any] = {}
    for entry in node.entries:
        name = entry.key.text
        settled.keys[*path, name] = entry.key
        values[name] = _read(entry.value, below(schema, name), (*path, name), settled, below)
        if _UNSAFE.search(name):
            settled.refuse((*path, name), "the key contains a character that no text may contain")
    return values


def _scalar(node: Scalar, schema: Schema, path: Path, settled: Settled) -> Any:
    types = schema.get("type", "string")
    wanted = {types} if isinstance(types, str) else set(types)
    verbatim = schema.get("format") == "text"  # a parameter may well be called null
    if node.empty and not (verbatim and node.text):
        return None
    if _UNSAFE.search(node.text):
        settled.refuse(path, "the text contains a character that no text may contain (NUL, or half a surrogate pair)")
        return node.text
    if "string" in wanted or not node.plain:
        return node.text
    if "boolean" in wanted and (truth := boolean(node.text)) is not None:
        word = str(truth).lower()
        if node.text.lower() != word:
            settled.warn(path, f"{node.text} means {word} to some YAML readers only", f"write {word}")
        return truth
    if not wanted & {"integer", "number"}:
        return node.text
    try:
        found = number(node.text)
    except BadText as bad:
        settled.refuse(path, bad.problem, bad.hint)
        return node.text
    return node.text if found is None else found
