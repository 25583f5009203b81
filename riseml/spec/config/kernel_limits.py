"""The variables and scripts in a riseml.yml that are longer than Linux takes. Pure.

Without this check such a text would be met only at the start of a job, as E2BIG, without its name.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping

from riseml.job_programs import add_report_module, read_program, write_program
from riseml.spec.config.types import Train
from riseml.spec.scalars.placeholders import find_placeholders, variable_name
from riseml.spec.scalars.text_sizes import HINT, LONGEST, describe_size, measure_variable
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile

_BETWEEN_LINES = "\ncase $? in 0) ;; *) exit ;; esac"
_BARRIER = "\n{ echo >&8 && read -r riseml_go <&9; } || exit"
"""What riseml writes behind a line, and behind one of several processes (`riseml.frameworks.base`)."""

_AROUND = 1000  # bytes of the lines before and behind a script, and of the order for several processes
_CERTAINLY_SHORT = 10_000  # bytes of lines; JSON in quotes makes them six times as long at most


def check_sizes(file: SourceFile, train: Train, scripts: Iterable[Mapping[KeyPath, str]]) -> None:
    """Refuse variables and scripts that no process can have. `scripts`: the lines of each script by their paths."""
    for path in _list_steps(file):
        size = len(str(file.value_at(path)).encode()) + _AROUND
        if size > LONGEST:
            file.refuse(path, f"the step has {describe_size(size)}", "put it into a file of the project, and run that")
    for variable in train.env:
        if variable.value is not None:
            _check_variable(file, _find_env(file, variable.name), variable.name, variable.value)
    names = dict(train.policy.variables)
    for parameter in train.parameters:
        name = names.get(parameter.name, variable_name(parameter.name))
        for value in parameter.values if name else ():
            _check_variable(file, ("train", "parameters", parameter.name), name, value)
    longest = {declared.name: max(declared.values, key=len, default="") for declared in train.parameters}
    for lines in scripts:
        _check_script(file, lines, longest, train)


def _list_steps(file: SourceFile) -> list[KeyPath]:
    """Return the paths of the steps of `install`, those of roles included."""
    sections: list[KeyPath] = [
        ("train",),
        *(("train", "roles", name) for name in file.value_at(("train", "roles")) or {}),
    ]
    return [path for section in sections for path in file.items_at((*section, "install"))]


def _find_env(file: SourceFile, name: str) -> KeyPath:
    value = file.value_at(("train", "env"))
    if isinstance(value, dict):
        return ("train", "env", name)
    return next(("train", "env", at) for at, text in enumerate(value) if str(text).startswith(f"{name}="))


def _check_variable(file: SourceFile, path: KeyPath, name: str, value: str) -> None:
    size = measure_variable(name, value)
    if size > LONGEST and path not in file.bad:
        file.refuse_key(path, f"the variable {name} has {describe_size(size)}", HINT)


def _check_script(file: SourceFile, lines: Mapping[KeyPath, str], longest: Mapping[str, str], train: Train) -> None:
    filled = [_fill(line, longest) for line in lines.values()]
    launches = _launches(train)
    between = f"{_BETWEEN_LINES}{_BARRIER if launches else ''}\n"
    whole = between.join(filled)
    if len(whole.encode()) < _CERTAINLY_SHORT:
        return
    path = next(iter(lines))
    path = path[:-1] if isinstance(path[-1], int) else path
    if launches:
        whole = shlex.quote(json.dumps(whole)) + shlex.quote(read_program("rank_launcher"))
    if train.framework == "jax":
        whole += write_program("jax_exit", ".riseml/sitecustomize.py")
    size = len(add_report_module(whole).encode()) + _AROUND
    if size > LONGEST:
        problem = f"the script has {describe_size(size)}; this counts what riseml adds, and the longest values"
        file.refuse(path, problem, "put the lines into a file of the project, and run that: `bash steps.sh`")


def _fill(line: str, longest: Mapping[str, str]) -> str:
    """Return a line with the longest values of its parameters, which are quoted for the shell."""
    pieces = []
    last = 0
    for name, start, end in find_placeholders(line):
        if name in longest:
            pieces += [line[last:start], shlex.quote(longest[name])]
            last = end
    return "".join([*pieces, line[last:]])


def _launches(train: Train) -> bool:
    """Return True when a program in the script starts the processes, and has the script as JSON."""
    horovod = any(section is not None and section.horovod is not None for section in (train.tensorflow, train.pytorch))
    group = None if train.jax is None else train.jax.distributed
    return horovod or (group is not None and (group.processes or 1) > 1)
