"""Nodes to values. The schema of a key decides what its scalar is: `1.10` is a string for `version`, not for `cpus`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, TypeVar

from riseml.base.records import dataclass
from riseml.spec.scalars.quantities import is_bare_gib, parse_boolean, parse_duration, parse_memory, parse_number
from riseml.spec.scalars.texts import BadText, is_valid_text
from riseml.spec.yaml.document import Node, ScalarNode, SequenceNode
from riseml.spec.yaml.problems import FilePosition, KeyPath, Problem, Severity, make_problem

Schema = Mapping[str, Any]
T = TypeVar("T")


@dataclass(slots=True)
class SourceFile:
    """A file with its values, their positions and the problems found so far."""

    value: Any = None  # the whole file as dicts, lists and scalars
    nodes: dict[KeyPath, Node] = field(default_factory=dict)  # the node of each value
    keys: dict[KeyPath, ScalarNode] = field(default_factory=dict)  # the node of each key
    problems: list[Problem] = field(default_factory=list)
    bad: set[KeyPath] = field(default_factory=set)  # paths with an unusable value
    filled: dict[KeyPath, str] = field(default_factory=dict)  # the placeholders that parameters have filled, as written
    _wrong: set[str] = field(default_factory=set)  # paths with an error, as texts

    def find_position(self, path: KeyPath) -> FilePosition:
        """Return the position of a value, or of the nearest section around it."""
        if path in self.nodes:
            return self.nodes[path].position
        return self.find_key_position(path[:-1]) if path else FilePosition("riseml.yml")

    def find_key_position(self, path: KeyPath) -> FilePosition:
        """Return the position of a key, or of its value when there is no key."""
        return self.keys[path].position if path in self.keys else self.find_position(path)

    def value_at(self, path: KeyPath) -> Any:
        """Return the value at a path; None when it is missing or unusable."""
        if () in self.bad:
            return None
        value = self.value
        for end, part in enumerate(path, 1):
            is_there = (
                part in value if isinstance(value, dict) else isinstance(value, list) and part in range(len(value))
            )
            if not is_there or path[:end] in self.bad:
                return None
            value = value[part]
        return value

    def memory_at(self, path: KeyPath) -> int | None:
        """Return the memory at a path in MiB; None when there is none, or after noting why it cannot be read.

        A number without a unit that is taken as GiB is noted as a warning.
        """
        mib = self._parse_at(path, parse_memory)
        if mib is not None and is_bare_gib(text := self.value_at(path)):
            self.warn(path, f"{text} has no unit and is read as {text} GiB", f"write {text}GiB, or {text}MiB")
        return mib

    def duration_at(self, path: KeyPath) -> float | None:
        """Return the duration at a path in seconds; None when there is none, or after noting why it cannot be read."""
        return self._parse_at(path, parse_duration)

    def _parse_at(self, path: KeyPath, parse_text: Callable[[str], T]) -> T | None:
        text = self.value_at(path)
        if text is None:
            return None
        try:
            return parse_text(text)
        except BadText as bad:
            self.refuse(path, bad.problem, bad.hint)
            return None

    def add_problem(self, problem: Problem) -> None:
        """Note a problem, unless its path already has an error: one wrong value may break several rules."""
        if problem.path not in self._wrong:
            self.problems.append(problem)
        if problem.severity is Severity.ERROR:
            self._wrong.add(problem.path)

    def refuse(self, path: KeyPath, problem: str, hint: str = "") -> None:
        """Note that the value at a path is unusable."""
        self.bad.add(path)
        self.add_problem(make_problem(self.find_position(path), path, problem, hint))

    def refuse_key(self, path: KeyPath, problem: str, hint: str = "") -> None:
        """Note that the key at the end of a path does not belong there, or is missing."""
        self.bad.add(path)
        self.add_problem(make_problem(self.find_key_position(path), path, problem, hint))

    def warn(self, path: KeyPath, problem: str, hint: str = "") -> None:
        """Note a value that is legal but probably a mistake."""
        self.add_problem(make_problem(self.find_key_position(path), path, problem, hint, Severity.WARNING))


def read_values(root: Node, schema: Schema, below: Callable[[Schema, str | int], Schema]) -> SourceFile:
    """Return the values of a tree of nodes.

    Args:
        root: the tree.
        schema: the schema of the whole file.
        below: returns the schema of a key or an item.
    """
    file = SourceFile()
    file.value = _read_node(root, schema, (), file, below)
    return file


def _read_node(
    node: Node, schema: Schema, path: KeyPath, file: SourceFile, below: Callable[[Schema, str | int], Schema]
) -> Any:
    file.nodes[path] = node
    if isinstance(node, ScalarNode):
        return _read_scalar(node, schema, path, file)
    if isinstance(node, SequenceNode):
        inner = below(schema, 0)
        return [_read_node(item, inner, (*path, index), file, below) for index, item in enumerate(node.items)]
    values: dict[str, Any] = {}
    for entry in node.entries:
        name = entry.key.text
        file.keys[*path, name] = entry.key
        values[name] = _read_node(entry.value, below(schema, name), (*path, name), file, below)
        if not is_valid_text(name):
            file.refuse((*path, name), "the key contains an invalid character (NUL or half a surrogate pair)")
    return values


def _read_scalar(node: ScalarNode, schema: Schema, path: KeyPath, file: SourceFile) -> Any:
    types = schema.get("type", "string")
    expected = {types} if isinstance(types, str) else set(types)
    verbatim = schema.get("format") == "text"  # a parameter may have the value `null`
    if node.empty and not (verbatim and node.text):
        return None
    if not is_valid_text(node.text):
        file.refuse(path, "the text contains an invalid character (NUL or half a surrogate pair)")
        return node.text
    if "string" in expected or not node.plain:
        return node.text
    if "boolean" in expected and (truth := parse_boolean(node.text)) is not None:
        word = str(truth).lower()
        if node.text.lower() != word and schema.get("not") != {"const": truth}:
            file.warn(path, f"only some YAML readers read {node.text} as {word}", f"write {word}")
        return truth
    if not expected & {"integer", "number"}:
        return node.text
    try:
        number = parse_number(node.text)
    except BadText as bad:
        file.refuse(path, bad.problem, bad.hint)
        return node.text
    return node.text if number is None else number
