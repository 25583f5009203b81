"""Parameters: their values, the number of experiments, and the placeholders of `run` that they fill."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType

from riseml.spec.config.dependent_parameters import check_kind, read_when
from riseml.spec.config.distributions import read_distribution
from riseml.spec.config.repeat import is_made_by_repeat
from riseml.spec.config.roles_section import list_role_names
from riseml.spec.config.types import Parameter
from riseml.spec.config.variable_names import list_variable_names, name_variable
from riseml.spec.scalars.known_variables import find_variable_reader
from riseml.spec.scalars.placeholders import BUILT_IN_PLACEHOLDERS, find_placeholders, variable_name
from riseml.spec.scalars.quantities import format_decimal
from riseml.spec.scalars.role_names import list_role_placeholders, list_role_variables
from riseml.spec.scalars.texts import quote_text
from riseml.spec.schema.foreign_words import explain_call
from riseml.spec.schema.near_words import suggest_word
from riseml.spec.yaml.document import ScalarNode
from riseml.spec.yaml.problems import FilePosition, KeyPath, make_problem
from riseml.spec.yaml.values import SourceFile

_PATH: KeyPath = ("train", "parameters")
MOST_EXPERIMENTS = 1_000  # experiments of a set, and values of a range

RISEML_VARIABLES = frozenset(
    {
        *("OUTPUT_DIR", "DATA_DIR", "PROJECT_NAME", "EXPERIMENT_ID", "RISEML_JOB", "RISEML_ATTEMPT"),
        *("TF_CONFIG", "WORKER_INDEX", "TOTAL_WORKERS", "TINI_KILL_PROCESS_GROUP"),
    }
)
"""Variables that riseml sets itself."""

FRAMEWORK_VARIABLES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "pytorch": frozenset(
            {
                *("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK"),
                *("PET_NNODES", "PET_NODE_RANK", "PET_NPROC_PER_NODE", "PET_MASTER_ADDR", "PET_MASTER_PORT"),
            }
        ),
        "horovod": frozenset(
            {
                *("HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE", "HOROVOD_CROSS_RANK"),
                *("HOROVOD_CROSS_SIZE", "HOROVOD_HOSTNAME", "HOROVOD_CONTROLLER", "HOROVOD_CPU_OPERATIONS"),
                *("HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT"),
            }
        ),
        "pytorch alone": frozenset(
            {"PET_NNODES", "PET_NODE_RANK", "PET_NPROC_PER_NODE", "PET_MASTER_ADDR", "PET_MASTER_PORT"}
        ),
        "jax": frozenset(
            {
                *("JAX_COORDINATOR_ADDRESS", "JAX_COORDINATOR_BIND_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"),
                *("JAX_LOCAL_DEVICE_IDS", "JAX_ENABLE_PREEMPTION_SERVICE"),
                *("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID"),
            }
        ),
    }
)
"""Variables that a framework sets in each of its jobs, by `framework`; with Horovod, those of Horovod. A job that is
alone has those of `pytorch alone`, or none."""

RESERVED_VARIABLES = frozenset(
    {
        *RISEML_VARIABLES,
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "IFS", "LD_LIBRARY_PATH", "LD_PRELOAD"),
        *("PYTHONPATH", "PYTHONHOME", "PYTHONUNBUFFERED", "NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
    }
)
"""Variables that no parameter may set."""

_ODD = re.compile(r"\{\{[^{}\n]*\}\}")


def read_parameters(file: SourceFile) -> tuple[Parameter, ...]:
    """Return all usable parameters; problems go to `file`."""
    section = file.value_at(_PATH) or {}
    parameters: list[Parameter] = []
    variables: dict[str, str] = {}
    for name in section:
        path = (*_PATH, name)
        if path in file.bad:
            continue
        _check_name(file, path, name, variables)
        if not check_kind(file, path):
            continue
        distribution = read_distribution(file, path)
        values = () if distribution else _read_parameter_values(file, path)
        if values or distribution:
            parameters.append(Parameter(name, values, distribution, *read_when(file, path)))
    count = math.prod(len(parameter.values) for parameter in parameters if parameter.values)
    if count > MOST_EXPERIMENTS and file.value_at(("train", "search", "method")) in (None, "grid"):
        problem = f"the parameters make {count:,} experiments; at most {MOST_EXPERIMENTS:,} are allowed"
        file.refuse_key(_PATH, problem, "use fewer values")
    return tuple(parameters)


def check_placeholders(file: SourceFile, lines: Mapping[KeyPath, str]) -> None:
    """Refuse placeholders without a parameter, and warn of parameters that no line, count or resource uses.

    Args:
        file: the file; problems go there.
        lines: the path and the text of every line of `run`.
    """
    texts = {**lines, **file.filled}
    names = {path: [name for name, _, _ in find_placeholders(text)] for path, text in texts.items()}
    corrections = _refuse_undefined(file, names)
    _warn_of_odd_braces(file, texts)
    _check_use(file, corrections.union(*names.values()), "\n".join(lines.values()))


def _refuse_undefined(file: SourceFile, names: Mapping[KeyPath, Sequence[str]]) -> set[str]:
    """Refuse each placeholder without a parameter once. Return the parameters that misspelt ones mean: a misspelt
    placeholder is one problem, not also an unused parameter.
    """
    section = file.value_at(_PATH) or {}
    built_in = BUILT_IN_PLACEHOLDERS | list_role_placeholders(list_role_names(file))
    undefined: dict[str, str | None] = {}
    for path, used in names.items() if _PATH not in file.bad else ():
        filled = frozenset() if path in file.filled else built_in  # riseml fills them in when the counts are known
        for order, name in enumerate(used):
            if name not in section and name not in filled and name not in undefined:
                undefined[name] = suggest_word(name, [*section, *sorted(filled)])
                _note_undefined(file, path, order, (name, undefined[name]))
    return {near for near in undefined.values() if near is not None}


def _warn_of_odd_braces(file: SourceFile, texts: Mapping[KeyPath, str]) -> None:
    """Warn of the first text of each line that looks like a placeholder, and is none."""
    for path, text in texts.items():
        odd = next((part for part in _ODD.findall(text) if not find_placeholders(part)), None)
        if odd is not None:
            file.warn(path, f"{quote_text(odd)} is not a placeholder and stays as it is", "a placeholder is {{name}}")


def _check_use(file: SourceFile, used: Container[str], script: str) -> None:
    """Warn of parameters that no line uses, by placeholder or variable; refuse those that only an option names.

    Args:
        file: the file; problems go there.
        used: the names in placeholders.
        script: all lines of `run`.
    """
    section = file.value_at(_PATH) or {}
    for name in section:
        variable = name_variable(file, name)
        if (
            name in used
            or is_made_by_repeat(file, name)
            or (variable and re.search(rf"\$\{{?{re.escape(variable)}\b", script))
        ):
            continue
        if file.find_key_position((*_PATH, name)).file != file.find_position(("train",)).file:
            _refuse_unknown(file, name, [key for key in section if key != name])
            continue
        hint = f"jobs have it as {variable} in their environment" if variable else "and its variable is `false`"
        file.warn((*_PATH, name), f"no line of `run` uses {{{{{name}}}}}", hint)


def _refuse_unknown(file: SourceFile, name: str, keys: list[str]) -> None:
    """Refuse a parameter of the command line that the file does not have and nothing uses: its name is misspelt."""
    near = suggest_word(name, keys)
    listed = f"there is {', '.join(keys[:10])}; " if keys else ""
    hint = f"{listed}add it to train.parameters, if the code reads {variable_name(name)} from its environment"
    hint = hint if near is None else f'did you mean "{near}"?'
    file.refuse((*_PATH, name), f"the file has no parameter {quote_text(name)}, and no line of `run` uses it", hint)


def _note_undefined(file: SourceFile, path: KeyPath, order: int, names: tuple[str, str | None]) -> None:
    name, near = names
    if near is not None:
        hint = f'did you mean "{near}"?'
    else:
        hint = f"add it to train.parameters, or run `riseml train -p {name}=VALUE`"
    problem = f"there is no parameter {quote_text(name)}"
    # not `refuse`, which keeps one problem for each path: a line may have several undefined placeholders
    file.problems.append(make_problem(_placeholder_position(file, path, order), path, problem, hint))
    file.bad.add(path)


def _placeholder_position(file: SourceFile, path: KeyPath, order: int) -> FilePosition:
    node = file.nodes[path]
    if isinstance(node, ScalarNode) and order < len(node.spots):
        return node.spots[order]
    return node.position


def find_plugin(file: SourceFile) -> str | None:
    """Return the key of the file's jobs in `FRAMEWORK_VARIABLES`; None without a framework."""
    framework = file.value_at(("train", "framework"))
    if framework and file.value_at(("train", framework, "horovod")):
        return "horovod"
    if framework in ("pytorch", "jax") and _is_alone(file, ("train", framework, "distributed")):
        return f"{framework} alone"
    return None if framework is None else str(framework)


def _is_alone(file: SourceFile, group: KeyPath) -> bool:
    """Return True for a file whose one job is not a process group; `riseml.frameworks.process_group.is_alone`."""
    if file.value_at(group) is None:
        return True
    worker = file.value_at((*group, "worker"))
    count = file.value_at((*group, "worker", "count")) if isinstance(worker, dict) else worker
    return count in (None, 1) and file.value_at((*group, "processes")) == 1


def is_set_by_riseml(name: str, framework: str | None, roles: Iterable[str] = ()) -> bool:
    """Return True for a variable that riseml sets in the jobs of a framework or of roles, whatever `env` says."""
    return (
        name in RISEML_VARIABLES
        or name.startswith("RISEML_")
        or name in FRAMEWORK_VARIABLES.get(framework or "", frozenset())
        or name in list_role_variables(roles)
    )


def _check_name(file: SourceFile, path: KeyPath, name: str, variables: dict[str, str]) -> None:
    variable = name_variable(file, name)
    if name in BUILT_IN_PLACEHOLDERS:
        file.refuse_key(path, f"riseml itself fills in {{{{{name}}}}}", "rename the parameter")
    elif not variable:
        return
    elif variable in RESERVED_VARIABLES or is_set_by_riseml(variable, find_plugin(file), list_role_names(file)):
        problem = f"the parameter would set the environment variable {variable}, which jobs need"
        file.refuse_key(path, problem, _hint_at_name(name))
    elif variable in variables:
        problem = f"this and {quote_text(variables[variable])} would both set the environment variable {variable}"
        file.refuse_key(path, problem, "rename one of them")
    elif name not in list_variable_names(file) and (reader := find_variable_reader(variable)) is not None:
        problem = f"jobs get it as the environment variable {variable}, which {reader} may read"
        file.warn(path, problem, _hint_at_name(name))
    variables.setdefault(variable, name)


def _hint_at_name(name: str) -> str:
    return f"rename the parameter, or name its variable: `variables: {{{name}: MY_{variable_name(name)}}}` in train"


def _read_parameter_values(file: SourceFile, path: KeyPath) -> tuple[str, ...]:
    value = file.value_at(path)
    if isinstance(value, dict) and "values" in value:
        return _read_parameter_values(file, (*path, "values"))
    if isinstance(value, dict):
        return _read_range(file, (*path, "range")) if "range" in value else ()
    if not isinstance(value, list):
        if hint := explain_call(str(value)):
            file.warn(path, f"{quote_text(str(value))} is one value, the text as it is", hint)
        return (str(value),)
    texts: list[str] = []
    keys: set[str] = set()
    for index, item in enumerate(value):
        inner = (*path, index)
        if inner in file.bad:
            continue
        if item in keys:
            file.warn(inner, f"the value {quote_text(item)} appears twice", "the same experiment runs twice")
        texts.append(item)
        keys.add(item)
    return tuple(texts)


def _read_range(file: SourceFile, path: KeyPath) -> tuple[str, ...]:
    parts = [file.value_at((*path, key)) for key in ("min", "max", "step")]
    if any(part is None for part in parts):
        return ()
    low, high, step = (Decimal(part) for part in parts)
    if low > high:
        file.refuse((*path, "min"), f"min {low} is more than max {high}", "swap them")
        return ()
    steps = (high - low) / step
    if steps >= MOST_EXPERIMENTS:
        file.refuse_key(path, f"the range has more than {MOST_EXPERIMENTS:,} values", "use a larger step")
        return ()
    values = tuple(_list_points(low, step, int(steps)))
    if steps != int(steps):
        problem = f"max is not reached: the last value is {values[-1]}"
        file.warn((*path, "max"), problem, "max is included only when a step ends on it")
    return values


def _list_points(low: Decimal, step: Decimal, count: int) -> Iterator[str]:
    for index in range(count + 1):
        yield format_decimal(low + index * step)
