"""Parameters: ranges to values, how many experiments they make, and which placeholders of `run` they fill."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal

from riseml.spec.config.types import Parameter
from riseml.spec.scalars.placeholders import BUILT_IN, find_placeholders, variable_name
from riseml.spec.scalars.quantities import decimal_text
from riseml.spec.scalars.texts import quote_text
from riseml.spec.schema.sentences import suggest_word
from riseml.spec.yaml.document import ScalarNode
from riseml.spec.yaml.problems import FilePosition, KeyPath, make_problem
from riseml.spec.yaml.values import SourceFile

PATH: KeyPath = ("train", "parameters")
MOST_EXPERIMENTS = 1_000

OWN = frozenset(
    {
        *("OUTPUT_DIR", "DATA_DIR", "PROJECT_NAME", "EXPERIMENT_ID", "RISEML_JOB", "RISEML_ATTEMPT"),
        *("TF_CONFIG", "WORKER_INDEX", "TOTAL_WORKERS", "TINI_KILL_PROCESS_GROUP"),
    }
)
"""Variables that riseml sets, whatever the file says."""

RESERVED = frozenset(
    {
        *OWN,
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "IFS", "LD_LIBRARY_PATH", "LD_PRELOAD"),
        *("PYTHONPATH", "PYTHONHOME", "PYTHONUNBUFFERED", "NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
    }
)
"""Variables that a parameter may not set by its name alone."""

_ODD = re.compile(r"\{\{[^{}\n]*\}\}")


def read_parameters(file: SourceFile) -> tuple[Parameter, ...]:
    """All usable parameters; problems go to `settled`."""
    section = file.value_at(PATH) or {}
    found: list[Parameter] = []
    variables: dict[str, str] = {}
    for name in section:
        path = (*PATH, name)
        if path in file.bad:
            continue
        _check_name(file, path, name, variables)
        values = _values(file, path)
        if values:
            found.append(Parameter(name, values))
    count = math.prod(len(parameter.values) for parameter in found)
    if count > MOST_EXPERIMENTS:
        problem = f"the parameters make {count:,} experiments; at most {MOST_EXPERIMENTS:,} are allowed"
        file.refuse_key(PATH, problem, "give fewer values")
    return tuple(found)


def check_placeholders(file: SourceFile, lines: Mapping[KeyPath, str]) -> None:
    """Every placeholder of `run` needs a parameter; a parameter that nothing uses is worth a warning.

    `lines` has the path and the text of every line.
    """
    section = file.value_at(PATH) or {}
    undefined: set[str] = set()
    used: set[str] = set()
    for path, line in lines.items():
        for order, (name, _, _) in enumerate(find_placeholders(line)):
            used.add(name)
            if name in section or name in BUILT_IN or name in undefined or PATH in file.bad:
                continue
            undefined.add(name)
            near = suggest_word(name, [*section, *sorted(BUILT_IN)])
            used |= {near} if near else set()  # one mistake is one problem
            _undefined(file, path, order, (name, near))
        odd = next((text for text in _ODD.findall(line) if not find_placeholders(text)), None)
        if odd is not None:
            file.warn(path, f"{quote_text(odd)} is no placeholder and stays as it is", "write {{name}}")
    script = "\n".join(lines.values())
    for name in section:
        variable = variable_name(name)
        if name not in used and not re.search(rf"\$\{{?{re.escape(variable)}\b", script):
            hint = f"jobs find it as {variable} in their environment"
            file.warn((*PATH, name), f"no line of `run` uses {{{{{name}}}}}", hint)


def _undefined(file: SourceFile, path: KeyPath, order: int, names: tuple[str, str | None]) -> None:
    name, near = names
    if near is not None:
        hint = f'did you mean "{near}"?'
    else:
        hint = f"add it to train.parameters, or run `riseml train -p {name}=VALUE`"
    problem = f"there is no parameter {quote_text(name)}"
    # several placeholders may be undefined in one line, which has one path
    file.problems.append(make_problem(_spot(file, path, order), path, problem, hint))
    file.bad.add(path)


def _spot(file: SourceFile, path: KeyPath, order: int) -> FilePosition:
    node = file.nodes[path]
    if isinstance(node, ScalarNode) and order < len(node.spots):
        return node.spots[order]
    return node.position


def _check_name(file: SourceFile, path: KeyPath, name: str, variables: dict[str, str]) -> None:
    variable = variable_name(name)
    if name in BUILT_IN:
        file.refuse_key(path, f"{{{{{name}}}}} is filled in by riseml", "give the parameter another name")
    elif variable in RESERVED or variable.startswith("RISEML_"):
        problem = f"the parameter would set the environment variable {variable}, which jobs need"
        file.refuse_key(path, problem, "give the parameter another name")
    elif variable in variables:
        problem = f"this and {quote_text(variables[variable])} would both set the environment variable {variable}"
        file.refuse_key(path, problem, "give one of them another name")
    variables.setdefault(variable, name)


def _values(file: SourceFile, path: KeyPath) -> tuple[str, ...]:
    value = file.value_at(path)
    if isinstance(value, dict):
        return _range(file, (*path, "range"))
    if not isinstance(value, list):
        return (str(value),)
    found: list[str] = []
    seen: set[str] = set()
    for index, one in enumerate(value):
        inner = (*path, index)
        if inner in file.bad:
            continue
        if one in seen:
            file.warn(inner, f"the value {quote_text(one)} is there twice", "the same experiment runs twice")
        found.append(one)
        seen.add(one)
    return tuple(found)


def _range(file: SourceFile, path: KeyPath) -> tuple[str, ...]:
    parts = [file.value_at((*path, key)) for key in ("min", "max", "step")]
    if any(part is None for part in parts):
        return ()
    low, high, step = (Decimal(part) for part in parts)
    if low > high:
        file.refuse((*path, "min"), f"min {low} is more than max {high}", "exchange them")
        return ()
    steps = (high - low) / step
    if steps >= MOST_EXPERIMENTS:
        file.refuse_key(path, f"the range has more than {MOST_EXPERIMENTS:,} values", "use a larger step")
        return ()
    values = tuple(_points(low, step, int(steps)))
    if steps != int(steps):
        problem = f"max is not reached: the last value is {values[-1]}"
        file.warn((*path, "max"), problem, "max is included when the steps lead to it")
    return values


def _points(low: Decimal, step: Decimal, count: int) -> Iterator[str]:
    for index in range(count + 1):
        yield decimal_text(low + index * step)
