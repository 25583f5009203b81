"""The schemas of the files that people write: where they are, what they say about a place, and what breaks them."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path as FilePath
from typing import Any

from riseml.spec.schema.fast_check import is_surely_valid
from riseml.spec.schema.sentences import explain_schema_error
from riseml.spec.yaml.document import Node
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile, read_values

Schema = Mapping[str, Any]


class FileContract:
    """One schema of the folder `schemas`; read when it is first used.

    Args:
        name: its file's name.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @functools.cached_property
    def schema(self) -> Schema:
        """The whole schema, from the installed package or else from the repository."""
        packaged = resources.files("riseml").joinpath("schemas", self.name)
        if packaged.is_file():
            text = packaged.read_text(encoding="utf-8")
        else:
            text = (FilePath(__file__).parents[3] / "schemas" / self.name).read_text(encoding="utf-8")
        found: Schema = json.loads(text)
        return found

    def resolve(self, schema: Schema) -> Schema:
        """A part of the schema with its `$ref` followed; what stands beside the `$ref` wins."""
        while "$ref" in schema:
            name = schema["$ref"].removeprefix("#/$defs/")
            schema = {**self.schema["$defs"][name], **{key: value for key, value in schema.items() if key != "$ref"}}
        return schema

    def below(self, schema: Schema, part: str | int) -> Schema:
        """The schema of a key or an item of a resolved schema; empty when it says nothing about that."""
        if isinstance(part, int):
            found = schema.get("items", {})
        else:
            found = schema.get("properties", {}).get(part, schema.get("additionalProperties", {}))
        return self.resolve(found) if isinstance(found, Mapping) else {}

    def at(self, path: KeyPath) -> Schema:
        """The resolved schema of a place of the file."""
        schema = self.resolve(self.schema)
        for part in path:
            schema = self.below(schema, part)
        return schema

    def walk(self, schema: Schema | None = None, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Schema]]:
        """Every key of the file with its resolved schema, in the schema's order; items of lists have the index 0."""
        whole = self.resolve(self.schema if schema is None else schema)
        for key, child in whole.get("properties", {}).items():
            found = self.resolve(child)
            yield (*path, key), found
            yield from self.walk(found, (*path, key))
        if "items" in whole:
            yield from self.walk(whole["items"], (*path, 0))

    @functools.cached_property
    def homes(self) -> Mapping[str, KeyPath]:
        """Each key of the schema -> the section nearest to the top that has it."""
        found: dict[str, KeyPath] = {}
        for path, _ in sorted(self.walk(), key=lambda item: len(item[0])):
            found.setdefault(str(path[-1]), path[:-1])
        return found

    def check_values(self, root: Node) -> SourceFile:
        """A tree of nodes as the values that the schema wants, with a problem for everything that breaks the schema."""
        file = read_values(root, self.resolve(self.schema), self.below)
        if is_surely_valid(self.schema, file.value, self._find):
            return file
        unclear = frozenset(file.bad)
        for error in sorted(self._validator.iter_errors(file.value), key=lambda error: error.validator != "type"):
            path: KeyPath = tuple(error.absolute_path)
            if any(path[:end] in unclear for end in range(len(path) + 1)):
                continue
            for problem in explain_schema_error(error, path, file, self.at, self.homes):
                file.add(problem)
        return file

    def _find(self, render_config_reference: str) -> Schema:
        found: Schema = self.schema["$defs"][render_config_reference.removeprefix("#/$defs/")]
        return found

    @functools.cached_property
    def _validator(self) -> Any:
        from jsonschema import Draft202012Validator  # takes longer to import than a file takes to check
        from jsonschema.validators import extend

        return extend(Draft202012Validator, {"pattern": _check_pattern})(self.schema)


CONFIG = FileContract("riseml.schema.json")
POOL = FileContract("pool.schema.json")


def _check_pattern(validator: Any, pattern: str, text: Any, schema: Schema) -> Iterator[Any]:
    """JSON Schema's regular expressions are ECMA's, where `$` is the end alone, and not also the place before a line
    end.
    """
    from jsonschema import ValidationError

    if isinstance(text, str) and not re.search(pattern.replace("$", r"\Z"), text):
        yield ValidationError(f"{text!r} does not match {pattern!r}")
