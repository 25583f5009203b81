"""Writes the shapes of `riseml.wire` for who cannot import them: the client, which checks answers, and the web page.

Run it after a change of `riseml.wire`: `.venv/bin/python -m scripts.wire_shapes`. A test compares both files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints
from unittest.mock import MagicMock

from fastapi.routing import APIRoute
from typing_extensions import is_typeddict

from riseml import wire
from riseml.server.api.routes.router import make_router
from riseml.wire import agents, command_output

PACKAGE = Path(wire.__file__).parents[1]
SHAPES = PACKAGE / "client" / "answer_shapes.json"
TYPES = PACKAGE / "web" / "wire.d.ts"

_MARK = "// Made by `python -m scripts.wire_shapes` from riseml/wire. Do not edit it.\n"
_SCALARS = {str: "string", int: "number", float: "number", bool: "boolean", NoneType: "null", Any: "unknown"}


def write_shapes() -> str:
    """Return the file for the client: the kind of each key of each shape, as `client.answer_check` reads it."""
    lines = [f"{json.dumps(name)}: {json.dumps(_list_kinds(shape, _name_kind))}" for name, shape in _list_shapes()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write_types() -> str:
    """Return the file for TypeScript's compiler, which checks the JavaScript of the web page."""
    states = " | ".join(json.dumps(name) for name in get_args(wire.StateName))
    lines = [_MARK, f"export type StateName = {states};\n"]
    for name, shape in _list_shapes():
        keys = "; ".join(f"{key}: {kind}" for key, kind in _list_kinds(shape, _name_type).items())
        lines.append(f"export type {name} = {{ {keys} }};\n")
    return "".join([*lines, _write_routes()])


def list_routes() -> list[APIRoute]:
    """Return every route below /v1 of a server, of which none is answered; without streams into jobs."""
    return [route for route in make_router(MagicMock()).routes if isinstance(route, APIRoute)]


def _write_routes() -> str:
    """Return a type that names the answer to a request such as `GET /experiments/4`."""
    answers = {
        f"{method} {re.sub('{[^}]*}', '${string}', route.path.removeprefix('/v1'))}": route.response_model
        for route in list_routes()
        for method in sorted(route.methods or ())
    }
    lines = [
        f"  Request extends `{request}` ? {_name_type(answer)} :\n"
        for request, answer in sorted(answers.items(), key=lambda item: (-item[0].count("/"), item[0]))  # longest first
        if get_origin(answer) in (Union, UnionType) or is_typeddict(answer)
    ]
    return "".join(["export type AnswerTo<Request extends string> =\n", *lines, "  unknown;\n"])


def _list_shapes() -> list[tuple[str, Any]]:
    """Return the shapes that a server sends or gets, by their names."""
    shapes = [shape for shape in vars(wire).values() if is_typeddict(shape)]
    own = {command_output.__name__, agents.__name__}  # commands make these
    named = {shape.__name__: shape for shape in shapes if shape.__module__ not in own}
    return sorted(named.items())


def _list_kinds(shape: Any, name_kind: Callable[[Any], str]) -> Mapping[str, str]:
    """Return the kind of each key; the name of a key that may be absent ends with `?`."""
    hints = get_type_hints(shape, include_extras=True)
    return {f"{key}{'?' if get_origin(hint) is NotRequired else ''}": name_kind(hint) for key, hint in hints.items()}


def _name_kind(hint: Any) -> str:
    """Return a kind: `str`, `int/str`, `Name` of a shape, `?` before what may be null, `[` a list, `{` an object."""
    origin = get_origin(hint)
    parts = get_args(hint)
    if origin in (Annotated, NotRequired):
        return _name_kind(parts[0])
    if origin is Literal:  # a newer server may have further values
        return "/".join(sorted({type(part).__name__ for part in parts}))
    if origin is list:
        return f"[{_name_kind(parts[0])}"
    if origin is dict:
        return f"{{{_name_kind(parts[1])}"
    if origin is tuple:
        return "[any"
    if origin in (Union, UnionType):
        kinds = dict.fromkeys(_name_kind(part) for part in parts if part is not NoneType)
        return ("?" if NoneType in parts else "") + (
            "/".join(kinds) if len(kinds) == 1 or _are_scalars(parts) else "any"
        )
    return "any" if hint is Any else str(hint.__name__)


def _are_scalars(parts: tuple[Any, ...]) -> bool:
    return all(part in _SCALARS for part in parts)


def _name_type(hint: Any) -> str:
    """Return a type of TypeScript."""
    origin = get_origin(hint)
    parts = get_args(hint)
    if origin in (Annotated, NotRequired):
        return _name_type(parts[0])
    if hint == wire.StateName:
        return "StateName"
    if origin is Literal:
        return " | ".join(json.dumps(part) for part in parts)
    if origin is list:
        return f"Array<{_name_type(parts[0])}>"
    if origin is dict:
        return f"Record<string, {_name_type(parts[1])}>"
    if origin is tuple:
        return f"[{', '.join(_name_type(part) for part in parts)}]"
    if origin in (Union, UnionType):
        return " | ".join(dict.fromkeys(_name_type(part) for part in parts))
    return _SCALARS.get(hint) or str(hint.__name__)


if __name__ == "__main__":
    SHAPES.write_text(write_shapes())
    TYPES.write_text(write_types())
