"""`riseml.schema.json`: where it is, what it says about a place of the file, and what breaks it."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path as FilePath
from typing import Any

from riseml.spec.document import Node
from riseml.spec.problems import Path
from riseml.spec.sentences import explain
from riseml.spec.settle import Settled, settle

Schema = Mapping[str, Any]
_NAME = "riseml.schema.json"


@functools.cache
def load_schema() -> Schema:
    """The schema, from the installed package or else from the repository."""
    packaged = resources.files("riseml").joinpath("schemas", _NAME)
    if packaged.is_file():
        text = packaged.read_text(encoding="utf-8")
    else:
        text = (FilePath(__file__).parents[2] / "schemas" / _NAME).read_text(encoding="utf-8")
    schema: Schema = json.loads(text)
    return schema


def resolve(schema: Schema) -> Schema:
    """A part of the schema with its `$ref` followed; what stands beside the `$ref` wins."""
    while "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        schema = {**load_schema()["$defs"][name], **{key: value for key, value in schema.items() if key != "$ref"}}
    return schema


def below(schema: Schema, part: str | int) -> Schema:
    """The schema of a key or an item of a resolved schema; empty when it says nothing about that."""
    if isinstance(part, int):
        found = schema.get("items", {})
    else:
        found = schema.get("properties", {}).get(part, schema.get("additionalProperties", {}))
    return resolve(found) if isinstance(found, Mapping) else {}


def at(path: Path) -> Schema:
    """The resolved schema of a place of the file."""
    schema = resolve(load_schema())
    for part in path:
        schema = below(schema, part)
    return schema


def walk(schema: Schema | None = None, path: Path = ()) -> Iterator[tuple[Path, Schema]]:
    """Every key of the file with its resolved schema, in the schema's order."""
    for key, child in resolve(load_schema() if schema is None else schema).get("properties", {}).items():
        found = resolve(child)
        yield (*path, key), found
        yield from walk(found, (*path, key))


@functools.cache
def homes() -> Mapping[str, Path]:
    """Each key of the schema -> the section nearest to the top that has it."""
    found: dict[str, Path] = {}
    for path, _ in sorted(walk(), key=lambda item: len(item[0])):
        found.setdefault(str(path[-1]), path[:-1])
    return found


def apply_schema(root: Node) -> Settled:
    """A tree of nodes as the values that the schema wants, with a problem for everything that breaks the schema."""
    settled = settle(root, resolve(load_schema()), below)
    unclear = frozenset(settled.bad)
    for error in sorted(_validator().iter_errors(settled.value), key=lambda error: error.validator != "type"):
        path: Path = tuple(error.absolute_path)
        if any(path[:end] in unclear for end in range(len(path) + 1)):
            continue
        for problem in explain(error, path, settled, at, homes()):
            settled.add(problem)
    return settled


@functools.cache
def _validator() -> Any:
    from jsonschema import Draft202012Validator  # takes longer to import than a file takes to check
    from jsonschema.validators import extend

    return extend(Draft202012Validator, {"pattern": _check_pattern})(load_schema())


def _check_pattern(validator: Any, pattern: str, text: Any, schema: Schema) -> Iterator[Any]:
    """JSON Schema's regular expressions are ECMA's, where `$` is the end alone, and not also the place before a line
    end.
    """
    from jsonschema import ValidationError

    if isinstance(text, str) and not re.search(pattern.replace("$", r"\Z"), text):
        yield ValidationError(f"{text!r} does not match {pattern!r}")
