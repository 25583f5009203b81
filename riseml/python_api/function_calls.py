"""Calls of a function of the project as the command of a job: found by its import path, never by its source text.

A job imports the function as any of its modules does, from the project's files that were sent. Arguments and what it
returns are JSON.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

from riseml.base.errors import UsageError
from riseml.base.records import dataclass
from riseml.python_api.runs import RESULT_FILE

POINT = "point"
"""The parameter of `riseml.map`: the number of the point."""

_PROGRAM = """\
import json, os, sys
sys.path.insert(0, {root})
from {module} import {name} as function
call = json.loads({call}){choice}
value = function(*call[0], **call[1])
try:
    text = json.dumps(value)
except (TypeError, ValueError) as error:
    sys.exit("riseml: {module}.{name} returned what JSON cannot hold (%s); write it to a file in OUTPUT_DIR" % error)
if os.environ.get("RANK", "0") == "0":
    path = os.path.join(os.environ["OUTPUT_DIR"], {file})
    with open(path + ".part", "w") as file:
        file.write(text)
    os.replace(path + ".part", path)
"""


@dataclass(frozen=True, slots=True)
class FunctionPath:
    """Where a job finds a function."""

    root: str  # the folder of the project in which its module is found, relative to the project: `.`, `src`
    module: str  # `package.training`
    name: str  # of the function


def find_function(function: Callable[..., Any], project: Path) -> FunctionPath:
    """Return where a job finds a function.

    Args:
        function: defined at the top of a module.
        project: the folder of the project, whose files a job has.

    Raises:
        UsageError: a job could not import it by its name.
    """
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", "")
    if not isinstance(function, FunctionType) or not module:
        raise _refuse(f"{function!r} is not a function that a module defines")
    if name.endswith("<lambda>"):
        raise _refuse("a lambda has no name")
    if not name.isidentifier():
        raise _refuse(f"{name} is defined inside of another function or class")
    if module == "__main__":
        raise _refuse(f"{name} is defined in the program itself, or in a notebook")
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None or getattr(sys.modules[module], name, None) is not function:
        raise _refuse(f"{module} has no function {name} of its own")
    path = Path(file).resolve()
    inner = Path(*module.split("."))
    root = path.parents[len(inner.parts) - (0 if path.name == "__init__.py" else 1)]
    folder = project.resolve()
    if root != folder and folder not in root.parents:
        raise _refuse(f"{module} is {path}, which is not in the project {folder}")
    return FunctionPath(root.relative_to(folder).as_posix(), module, name)


def write_command(function: FunctionPath, arguments: Sequence[object], named: Mapping[str, object]) -> str:
    """Return the line for `run` that calls a function once.

    Raises:
        UsageError: an argument is nothing that JSON can hold.
    """
    return _write_line(function, _write_json([list(arguments), dict(named)]), "")


def write_map_command(function: FunctionPath, points: Sequence[object]) -> str:
    """Return the line for `run` that calls a function with the point whose number the parameter `point` has.

    Args:
        function: where it is.
        points: a dictionary of named arguments, a list of arguments, or one argument, for each call.
    """
    calls = [_read_point(point) for point in points]
    return _write_line(function, _write_json(calls), f"[{{{{{POINT}}}}}]")


def _read_point(point: object) -> list[object]:
    if isinstance(point, Mapping):
        return [[], dict(point)]
    return [list(point), {}] if isinstance(point, list | tuple) else [[point], {}]


def _write_line(function: FunctionPath, call: str, choice: str) -> str:
    program = _PROGRAM.format(
        root=json.dumps(function.root),
        module=function.module,
        name=function.name,
        call=repr(call),
        choice=choice,
        file=json.dumps(RESULT_FILE),
    )
    return f"python -c {shlex.quote(program)}"


def _write_json(value: object) -> str:
    """Return JSON in which no text of an argument looks like `{{parameter}}`, which `run` would replace."""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"an argument cannot be sent to a job: {error}",
            "pass numbers, texts, lists and dictionaries; or write it to a file of the project, and pass its path",
        ) from None
    return text.replace("{{", "{\\u007b")


def _refuse(reason: str) -> UsageError:
    return UsageError(
        f"a job cannot import this function: {reason}",
        "define it at the top of a module of the project, and import it from there: `from training import train`",
    )
