"""The JSON Schemas of riseml.yml, pool.yml and server.yml, and the check of a file against one of them."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any

from riseml.spec.schema.fast_check import is_surely_valid
from riseml.spec.yaml.document import Node
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile, read_values

Schema = Mapping[str, Any]
ANY_NAME = "NAME"
"""Stands for a key that the user names, in the paths of `FileContract.walk`."""

PARAMETER_MARK = "x-parameter"
"""The keyword of a schema whose value may be a parameter, `"{{name}}"`, in the file."""

_PLACEHOLDER = r"^\{\{"  # how the part of a pattern begins that accepts a placeholder


class FileContract:
    """One schema of the folder `schemas`, loaded at its first use.

    Args:
        name: the name of its file.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def path(self) -> FilePath:
        """The file of the schema, of the installed package or of the repository."""
        # Not importlib.resources: its import takes longer than the check of a file.
        package, repository = FilePath(__file__).parents[2:4]
        packaged = package / "schemas" / self.name
        return packaged if packaged.is_file() else repository / "schemas" / self.name

    @functools.cached_property
    def schema(self) -> Schema:
        """The whole schema.

        An editor checks a file with its placeholders. This check comes after parameters have filled them: a number has
        no pattern here, and PARAMETER_MARK in its place.
        """
        schema: Schema = json.loads(self.path.read_text(encoding="utf-8"), object_hook=_mark_parameter)
        return schema

    def resolve(self, schema: Schema) -> Schema:
        """Return a part of the schema with its `$ref` resolved; keys beside the `$ref` override those behind it."""
        while "$ref" in schema:
            name = schema["$ref"].removeprefix("#/$defs/")
            schema = {**self.schema["$defs"][name], **{key: value for key, value in schema.items() if key != "$ref"}}
        return schema

    def below(self, schema: Schema, part: str | int) -> Schema:
        """Return the schema of a key or an item of a resolved schema; empty when it has none."""
        if isinstance(part, int):
            below = schema.get("items", {})
        else:
            below = schema.get("properties", {}).get(part, schema.get("additionalProperties", {}))
        return self.resolve(below) if isinstance(below, Mapping) else {}

    def at(self, path: KeyPath) -> Schema:
        """Return the resolved schema of a path.

        Example: `CONFIG_CONTRACT.at(("train", "resources", "mem"))["default"]` is "1GiB".
        """
        schema = self.resolve(self.schema)
        for part in path:
            schema = self.below(schema, part)
        return schema

    def walk(self, schema: Schema | None = None, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Schema]]:
        """Yield path and resolved schema of every key, in the order of the schema; list items have the index 0, and
        keys that the user names are ANY_NAME.
        """
        whole = self.resolve(self.schema if schema is None else schema)
        for key, child in whole.get("properties", {}).items():
            resolved = self.resolve(child)
            yield (*path, key), resolved
            yield from self.walk(resolved, (*path, key))
        if "items" in whole:
            yield from self.walk(whole["items"], (*path, 0))
        if isinstance(whole.get("additionalProperties"), Mapping):
            yield from self.walk(whole["additionalProperties"], (*path, ANY_NAME))

    @functools.cached_property
    def places(self) -> Mapping[str, list[KeyPath]]:
        """Map each key of the schema to the paths of the sections that have it, the topmost first."""
        places: dict[str, list[KeyPath]] = {}
        for path, _ in sorted(self.walk(), key=lambda item: (ANY_NAME in item[0], len(item[0]))):
            if not isinstance(path[-1], int):
                places.setdefault(path[-1], []).append(path[:-1])
        return places

    def check_values(self, root: Node) -> SourceFile:
        """Return the values of a tree of nodes, with a problem for each violation of the schema."""
        file = read_values(root, self.resolve(self.schema), self.below)
        if is_surely_valid(self.schema, file.value, self._find_definition):
            return file
        from riseml.spec.schema.sentences import explain_schema_error  # only a file with a mistake needs it

        unclear = frozenset(file.bad)
        for error in sorted(self._validator.iter_errors(file.value), key=lambda error: error.validator != "type"):
            path: KeyPath = tuple(error.absolute_path)
            if any(path[:end] in unclear for end in range(len(path) + 1)):
                continue
            for problem in explain_schema_error(error, path, file, self.at, self.places):
                file.add_problem(problem)
        return file

    def _find_definition(self, render_config_reference: str) -> Schema:
        definition: Schema = self.schema["$defs"][render_config_reference.removeprefix("#/$defs/")]
        return definition

    @functools.cached_property
    def _validator(self) -> Any:
        # imported here, because only a file with errors needs it: see fast_check
        from jsonschema import Draft202012Validator
        from jsonschema.validators import extend

        return extend(Draft202012Validator, {"pattern": _check_pattern})(self.schema)


CONFIG_CONTRACT = FileContract("riseml.schema.json")
POOL_CONTRACT = FileContract("pool.schema.json")
SERVER_CONTRACT = FileContract("server.schema.json")


def _mark_parameter(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that accepts a placeholder without this part of its pattern, and marked."""
    pattern = schema.get("pattern")
    if not isinstance(pattern, str) or _PLACEHOLDER not in pattern:
        return schema
    fixed = pattern.partition(_PLACEHOLDER)[0].removesuffix("|")
    types = schema["type"] if fixed else [name for name in schema["type"] if name != "string"]
    changed = {"type": types[0] if len(types) == 1 else types, "pattern": fixed, PARAMETER_MARK: True}
    return {key: value for key, value in {**schema, **changed}.items() if key != "pattern" or fixed}


def _check_pattern(validator: Any, pattern: str, text: Any, schema: Schema) -> Iterator[Any]:
    """Check a pattern as JSON Schema means it: `$` matches only at the end, not also before a final line break."""
    from jsonschema import ValidationError

    if isinstance(text, str) and not re.search(pattern.replace("$", r"\Z"), text):
        yield ValidationError(f"{text!r} does not match {pattern!r}")
