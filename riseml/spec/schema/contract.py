"""The schemas of the files that people write: where they are, what they say about a place, and what breaks them."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path as FilePath
from typing import Any

from riseml.spec.schema.fast_check import surely_holds
from riseml.spec.schema.sentences import explain
from riseml.spec.yaml.document import Node
from riseml.spec.yaml.problems import Path
from riseml.spec.yaml.values import Settled, settle

Schema = Mapping[str, Any]


class Contract:
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

    def at(self, path: Path) -> Schema:
        """The resolved schema of a place of the file."""
        schema = self.resolve(self.schema)
        for part in path:
            schema = self.below(schema, part)
        return schema

    def walk(self, schema: Schema | None = None, path: Path = ()) -> Iterator[tuple[Path, Schema]]:
        """Every key of the file with its resolved schema, in the schema's order; items of lists have the index 0."""
        whole = self.resolve(self.schema if schema is None else schema)
        for key, child in whole.get("properties", {}).items():
            found = self.resolve(child)
            yield (*path, key), found
            yield from self.walk(found, (*path, key))
        if "items" in whole:
            yield from self.walk(whole["items"], (*path, 0))

    @functools.cached_property
    def homes(self) -> Mapping[str, Path]:
        """Each key of the schema -> the section nearest to the top that has it."""
        found: dict[str, Path] = {}
        for path, _ in sorted(self.walk(), key=lambda item: len(item[0])):
            found.setdefault(str(path[-1]), path[:-1])
        return found

    def apply(self, root: Node) -> Settled:
        """A tree of nodes as the values that the schema wants, with a problem for everything that breaks the schema."""
        settled = settle(root, self.resolve(self.schema), self.below)
        if surely_holds(self.schema, settled.value, self._find):
            return settled
        unclear = frozenset(settled.bad)
        for error in sorted(self._validator.iter_errors(settled.value), key=lambda error: error.validator != "type"):
            path: Path = tuple(error.absolute_path)
            if any(path[:end] in unclear for end in range(len(path) + 1)):
                continue
            for problem in explain(error, path, settled, self.at, self.homes):
                settled.add(problem)
        return settled

    def _find(self, reference: str) -> Schema:
        found: Schema = self.schema["$defs"][reference.removeprefix("#/$defs/")]
        return found

    @functools.cached_property
    def _validator(self) -> Any:
        from jsonschema import Draft202012Validator  # takes longer to import than a file takes to check
        from jsonschema.validators import extend

        return extend(Draft202012Validator, {"pattern": _check_pattern})(self.schema)


CONFIG = Contract("riseml.schema.json")
POOL = Contract("pool.schema.json")


def _check_pattern(validator: Any, pattern: str, text: Any, schema: Schema) -> Iterator[Any]:
    """JSON Schema's regular expressions are ECMA's, where `$` is the end alone, and not also the place before a line
    end.
    """
    from jsonschema import ValidationError

    if isinstance(text, str) and not re.search(pattern.replace("$", r"\Z"), text):
        yield ValidationError(f"{text!r} does not match {pattern!r}")
