"""Nodes to values. The schema of a key decides what its scalar is: `1.10` is a string for `version`, not for `cpus`."""

from __future__ import annotations

import enum
import functools
import sys
from collections.abc import Callable, Mapping
from dataclasses import field, fields, replace
from typing import Any, TypeVar, cast

from riseml.base.records import dataclass
from riseml.spec.scalars.quantities import find_assumed_unit, parse_boolean, parse_duration, parse_memory, parse_number
from riseml.spec.scalars.texts import BadText, is_valid_text
from riseml.spec.yaml.document import Node, ScalarNode, SequenceNode
from riseml.spec.yaml.problems import FilePosition, KeyPath, Problem, Severity, make_problem

Schema = Mapping[str, Any]
T = TypeVar("T")
_AMOUNTS = (int, float)
_QUOTED_TEXTS = ("formula", "switch")  # formats of which only a quoted scalar is a text
_SCALARS = (*_AMOUNTS, bool, str)


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
    _assumed: dict[str, Problem] = field(default_factory=dict)  # units of memory that the file leaves out

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

    def items_at(self, path: KeyPath) -> dict[KeyPath, Any]:
        """Return the usable values of a list or a map by their paths; any other value is the only one of its path."""
        whole = self.value_at(path)
        keys = whole if isinstance(whole, dict) else range(len(whole)) if isinstance(whole, list) else None
        paths = [path] if keys is None else [(*path, key) for key in keys]
        return {inner: value for inner in paths if (value := self.value_at(inner)) is not None}

    def read(self, path: KeyPath, kind: Callable[[Any], T]) -> T | None:
        """Return the value at a path as a number, a text, true or false, or a member of an enum; None when it is
        missing or unusable. A text is an amount: an `int` is memory in MiB, and a `float` is a duration in seconds.

        Example: `file.read(("train", "shm_size"), int)` is 2048 for `shm_size: 2GiB`.
        """
        value = self.value_at(path)
        if isinstance(value, str) and kind in _AMOUNTS:
            value = self._read_memory(path) if kind is int else self._parse_at(path, parse_duration)
        return None if value is None else kind(value)

    def _read_memory(self, path: KeyPath) -> int | None:
        """Return the memory at a path in MiB. A number without a unit is noted as a warning, once for each unit."""
        mib = self._parse_at(path, parse_memory)
        if mib is not None and (unit := find_assumed_unit(text := self.value_at(path))):
            self._warn_of_unit(path, text, unit)
        return mib

    def _warn_of_unit(self, path: KeyPath, text: str, unit: str) -> None:
        """Note the first amount of the file that lacks a unit; sections are read in an order of their own."""
        hint = f"write {text}GiB, or {text}MiB" if unit == "GiB" else f"write {text}MiB"
        message = f"{text} has no unit and is read as {text} {unit}"
        problem = make_problem(self.find_key_position(path), path, message, hint, Severity.WARNING)
        noted = self._assumed.get(unit)
        if noted is None or (problem.line, problem.column) < (noted.line, noted.column):
            self.problems = [other for other in self.problems if other is not noted]
            self._assumed[unit] = problem
            self.add_problem(problem)

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


def read_section(file: SourceFile, path: KeyPath, kind: type[T], base: T | None = None, **own: object) -> T:
    """Return a section whose class says what each plain key is: number, text, true or false, or a member of an enum.

    The schema has checked the types before, so that only the rules between several keys are left to the caller.

    Args:
        file: the file; amounts that cannot be read go there as problems.
        path: where the section is.
        kind: a dataclass whose fields have the names of the keys.
        base: what keys are that the section does not have; None: the defaults of the class.
        own: the fields that the caller has read.
    """
    values: dict[str, Any] = dict(own)
    for name, scalar in _list_plain_keys(cast(Any, kind)):
        if name not in own and (value := file.read((*path, name), scalar)) is not None:
            values[name] = value
    return kind(**values) if base is None else replace(base, **values)  # type: ignore[type-var]  # a dataclass


@functools.cache
def _list_plain_keys(kind: Any) -> tuple[tuple[str, Callable[[Any], object]], ...]:
    """Return the fields of a dataclass that hold one scalar, with the class of each."""
    names = {scalar.__name__: scalar for scalar in _SCALARS} | vars(sys.modules[kind.__module__])
    classes = {key.name: names.get(key.type.removesuffix(" | None")) for key in fields(kind)}
    return tuple(
        (name, scalar) for name, scalar in classes.items() if scalar in _SCALARS or isinstance(scalar, enum.EnumMeta)
    )


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
    if schema.get("format") in _QUOTED_TEXTS and node.plain:
        expected.discard("string")
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
