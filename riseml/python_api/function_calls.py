"""Calls of a function of the project as the command of a job: found by its import path, never by its source text.

A job imports the function as any of its modules does, from the project's files that were sent. Arguments and what it
returns are JSON.
"""

from __future__ import annotations

import inspect
import json
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any, ParamSpec

from riseml.base.errors import UsageError
from riseml.base.records import dataclass
from riseml.python_api.errors import add_hints
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


Arguments = ParamSpec("Arguments")


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function of the project, which a job makes: what `riseml.call` returns and `riseml.submit` takes."""

    function: Callable[..., Any]
    arguments: tuple[object, ...]
    named: Mapping[str, object]


def call(function: Callable[Arguments, object], /, *arguments: Arguments.args, **named: Arguments.kwargs) -> Call:
    """Return a call of a function for `riseml.submit`, with any names of arguments, also those of `submit`'s own.

    Example:
        riseml.submit(riseml.call(train, 3, message="hello"), message="a note on the run")

    Args:
        function: that a module of the project defines at its top.
        arguments: what JSON can hold.
        named: as `arguments`.

    Raises:
        UsageError: the function does not take these arguments.
    """
    with add_hints():
        return make_call(function, arguments, named)


def make_call(function: Callable[..., Any], arguments: Sequence[object], named: Mapping[str, object]) -> Call:
    """Return a call, after checking that the function takes its arguments.

    Raises:
        UsageError: it is no function, or does not take them.
    """
    if not isinstance(function, FunctionType):
        raise _refuse(f"{function!r} is not a function that a module defines")
    try:
        inspect.signature(function).bind(*arguments, **named)
    except TypeError as error:
        hint = f"it is {function.__name__}{inspect.signature(function)}"
        raise UsageError(f"{function.__name__} does not take these arguments: {error}", hint) from None
    return Call(function, tuple(arguments), named)


def check_points(function: Callable[..., Any], points: Sequence[object]) -> None:
    """Check that a function takes each point of `riseml.map` as its arguments.

    Raises:
        UsageError: it does not take one.
    """
    for number, point in enumerate(points):
        arguments, named = _read_point(point)
        try:
            make_call(function, arguments, named)
        except UsageError as error:
            raise UsageError(f"point {number}: {error.message}", error.hint) from None


def check_options(function: Callable[..., Any], options: set[str]) -> None:
    """Refuse an option of `submit` that a function has as an argument: the call does not say which is meant.

    Args:
        function: that is called.
        options: the options of `submit` that the call names.

    Raises:
        UsageError: there is one.
    """
    if isinstance(function, FunctionType):
        names = [name for name in inspect.signature(function).parameters if name in options]
        if names:
            raise UsageError(
                f"{names[0]} is an argument of {function.__name__}, and an option of submit",
                f"write submit(riseml.call({function.__name__}, {names[0]}=...)) for the argument",
            )


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


def _read_point(point: object) -> tuple[list[object], dict[str, object]]:
    if isinstance(point, Mapping):
        return [], dict(point)
    return (list(point), {}) if isinstance(point, list | tuple) else ([point], {})


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
