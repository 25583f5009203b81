"""Writes the shapes of riseml.yml for programs that make one: a TypedDict for each section of the schema.

Run it after a change of schemas/riseml.schema.json: `.venv/bin/python -m scripts.spec_shapes`. A test compares it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from keyword import iskeyword
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SCHEMA = ROOT / "schemas" / "riseml.schema.json"
SHAPES = ROOT / "riseml" / "python_api" / "shapes.py"

Node = Mapping[str, Any]

_HEAD = '''\
"""The shapes of riseml.yml for programs: `riseml.submit(spec)` takes a `SpecDict`, and a type checker its mistakes.

Made by `python -m scripts.spec_shapes` from schemas/riseml.schema.json. Do not edit it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Required, TypedDict'''
_SCALARS = {"string": "str", "number": "float", "integer": "int", "boolean": "bool", "null": "None"}
_WHOLE = "spec"
_UNNAMED = frozenset({_WHOLE, "train"})
"""Sections whose names are no part of the names of what is in them."""


class ShapeWriter:
    """Collects the classes of a schema, those first that others use.

    Args:
        schema: of riseml.yml.
    """

    def __init__(self, schema: Node) -> None:
        self._schema = schema
        self.classes: dict[str, str] = {}

    def write(self) -> str:
        """Return the module, as `ruff format` leaves it."""
        self._name_object((_WHOLE,), self._schema)
        names = ", ".join(json.dumps(name) for name in sorted(self.classes))
        text = "\n\n".join([_HEAD, f"__all__ = [{names}]", *self.classes.values()]) + "\n"
        command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(SHAPES), "-"]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout

    def _name_type(self, path: tuple[str, ...], node: Node) -> str:
        """Return the type of a value, whose key is the last part of the path."""
        if "$ref" in node:
            name = node["$ref"].rpartition("/")[2]
            return self._name_type((name,), self._schema["$defs"][name])
        if "enum" in node:
            return f"Literal[{', '.join(json.dumps(value) for value in node['enum'])}]"
        kinds = node["type"] if isinstance(node["type"], list) else [node["type"]]
        return " | ".join(dict.fromkeys(part for kind in kinds for part in self._list_parts(kind, path, node)))

    def _list_parts(self, kind: str, path: tuple[str, ...], node: Node) -> Iterator[str]:
        if kind == "array":
            yield f"Sequence[{self._name_type(path, node['items'])}]"
        elif kind != "object":
            yield _SCALARS[kind]
        elif "properties" in node:
            yield self._name_object(path, node)
        else:
            yield f"Mapping[str, {self._name_type(path, node['additionalProperties'])}]"

    def _name_object(self, path: tuple[str, ...], node: Node) -> str:
        words = [word for part in path for word in part.split("_")]
        name = "".join(word.capitalize() for word in words) + "Dict"
        if name not in self.classes:
            below = () if path[-1] in _UNNAMED else path
            self.classes[name] = ""  # its place, for a section that is within itself
            types = {key: self._name_type((*below, key), value) for key, value in node["properties"].items()}
            del self.classes[name]
            self.classes[name] = _write_class(name, node, types)
        return name


def _write_class(name: str, node: Node, types: Mapping[str, str]) -> str:
    required = node.get("required", ())
    title = json.dumps(f"{node.get('title', name)}.")[1:-1]
    if any(map(iskeyword, types)):
        keys = ", ".join(f'"{key}": {kind}' for key, kind in types.items())
        total = "" if set(required) == set(types) else ", total=False"
        return f'{name} = TypedDict("{name}", {{{keys}}}{total})\n"""{title}"""'
    lines = [f"class {name}(TypedDict, total=False):", f'    """{title}"""', ""]
    for key, kind in types.items():
        comment = node["properties"][key].get("title", "")
        kind = f"Required[{kind}]" if key in required else kind
        lines.append(f"    {key}: {kind}{f'  # {comment}' if comment else ''}")
    return "\n".join(lines)


def write_shapes() -> str:
    """Return the text of the module."""
    return ShapeWriter(json.loads(SCHEMA.read_text())).write()


if __name__ == "__main__":
    SHAPES.write_text(write_shapes())
