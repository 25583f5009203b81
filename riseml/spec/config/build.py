"""Values that fit the schema to a `Spec`, and the problems that a schema cannot see."""

from __future__ import annotations

from typing import Any

from riseml.spec.config.cluster import read_memory, read_resources, read_tensorflow
from riseml.spec.config.parameters import OWN, check_placeholders, read_parameters
from riseml.spec.config.types import (
    DEFAULT_TENSORFLOW,
    EnvVariable,
    Limits,
    Parameter,
    Resources,
    Retry,
    RetryOn,
    RetryScope,
    Spec,
    Train,
)
from riseml.spec.yaml.document import Scalar
from riseml.spec.yaml.placeholders import variable_name
from riseml.spec.yaml.problems import Path
from riseml.spec.yaml.scalars import BadText, duration
from riseml.spec.yaml.values import Settled

_TRAIN: Path = ("train",)
_BRINGS_IMAGE = frozenset({"tensorflow"})


def build(settled: Settled) -> Spec:
    """The spec of a file. It is of use only when `settled` has no error then; problems are added there."""
    image, install = _environment(settled)
    framework = settled.value_at((*_TRAIN, "framework"))
    limits = _limits(settled)
    resources = read_resources(settled, (*_TRAIN, "resources"), _default_resources(limits))
    tensorflow = read_tensorflow(settled, image, resources)
    run = _lines(settled, (*_TRAIN, "run"))
    _check_framework(settled, framework, image)
    parameters = read_parameters(settled)
    check_placeholders(settled, run)
    train = Train(
        run=tuple(run.values()),
        image=image,
        install=install,
        resources=resources,
        limits=limits,
        framework=framework,
        tensorflow=tensorflow,
        parameters=parameters,
        concurrency=_or_else(settled.value_at((*_TRAIN, "concurrency")), 1),
        env=_env(settled, parameters),
        shm_size=read_memory(settled, (*_TRAIN, "shm_size")),
        retry=_retry(settled),
        max_duration=_duration(settled, "max_duration", None),
        stop_grace=_duration(settled, "stop_grace", 10.0) or 0.0,
        finish_grace=_duration(settled, "finish_grace", None),
        priority=_or_else(settled.value_at((*_TRAIN, "priority")), 0),
    )
    _check_limits(settled, train)
    if train.max_duration == 0:
        settled.refuse((*_TRAIN, "max_duration"), "must be more than 0", "leave it out for runs without an end")
    return Spec(str(settled.value_at(("project",))), train, _notes(settled, train))


def _or_else(value: Any, default: int) -> int:
    return default if value is None else int(value)


def _lines(settled: Settled, path: Path) -> dict[Path, str]:
    """The texts of a text or a list of texts, by path."""
    value = settled.value_at(path)
    paths = [(*path, index) for index in range(len(value))] if isinstance(value, list) else [path]
    found: dict[Path, str] = {}
    for one in paths:
        text = settled.value_at(one)
        if text is None:
            continue
        if text.strip():
            found[one] = _folded(settled, one, text)
        else:
            settled.refuse(one, "is an empty text")
    return found


def _folded(settled: Settled, path: Path, text: str) -> str:
    """A command as it was meant where YAML folds lines.

    A `>` text keeps the line breaks before lines that are indented further, also where options of one command are lined
    up below each other: no command begins with a dash, so those lines belong to the one above. And a backslash that was
    a line's end for the shell is the escape of a space once YAML has joined the lines.
    """
    node = settled.nodes[path]
    if isinstance(node, Scalar):
        for index in reversed(node.continued):
            text = text[:index] + text[index + 1 :]
        if node.style == ">":
            text = _options_joined(text)
    return text.rstrip("\n")


def _options_joined(text: str) -> str:
    lines: list[str] = []
    for line in text.split("\n"):
        inner = line.strip(" \t")
        if inner.startswith("-") and lines and lines[-1].strip():
            lines[-1] = f"{lines[-1].rstrip()} {inner}"
        else:
            lines.append(line)
    return "\n".join(lines)


def _environment(settled: Settled) -> tuple[str | None, tuple[str, ...]]:
    """The image, and the install steps from either place."""
    path = (*_TRAIN, "image")
    image = settled.value_at(path)
    inner = (*path, "install")
    outer = (*_TRAIN, "install")
    if not isinstance(image, dict):
        return image, tuple(_lines(settled, outer).values())
    if settled.value_at(inner) is not None and settled.value_at(outer) is not None:
        line = settled.key_place(inner).line
        settled.refuse_key(
            outer,
            f"install steps are given twice: here and in train.image.install on line {line}",
            "put all of them into one place",
        )
    steps = _lines(settled, inner) or _lines(settled, outer)
    return settled.value_at((*path, "name")), tuple(steps.values())


def _check_framework(settled: Settled, framework: str | None, image: str | None) -> None:
    train = settled.value_at(_TRAIN)
    if not isinstance(train, dict) or (*_TRAIN, "framework") in settled.bad:
        return
    path = (*_TRAIN, "tensorflow")
    if "tensorflow" in train and framework != "tensorflow":
        if framework is None:
            settled.refuse_key(
                path, "the section has no effect without a framework", "write `framework: tensorflow` in train"
            )
            return
        settled.refuse_key(path, f"the section does not go with `framework: {framework}`", "leave it out")
    if image is None and "image" not in train and framework not in _BRINGS_IMAGE:
        other = ", or `framework: tensorflow`, which brings one" if framework is None else ""
        hint = f"write `image: python:3.11`{other}" if framework != "pytorch" else "write `image: pytorch/pytorch`"
        settled.refuse_key((*_TRAIN, "image"), "is missing", hint)


def _limits(settled: Settled) -> Limits:
    path = (*_TRAIN, "limits")
    cpus = settled.value_at((*path, "cpus"))
    return Limits(None if cpus is None else float(cpus), read_memory(settled, (*path, "mem")))


def _default_resources(limits: Limits) -> Resources:
    """What a file without `resources` gets: never more than its own limits."""
    default = Resources()
    cpus = default.cpus if limits.cpus is None else min(default.cpus, limits.cpus)
    return Resources(cpus, default.mem if limits.mem is None else min(default.mem, limits.mem), default.gpus)


def _check_limits(settled: Settled, train: Train) -> None:
    path = (*_TRAIN, "limits")
    for name, resources in _roles(train):
        if train.limits.cpus is not None and train.limits.cpus < resources.cpus:
            problem = f"{train.limits.cpus:g} cpus are less than the {resources.cpus:g} that {name} guarantees"
            settled.refuse((*path, "cpus"), problem, "a limit is at least as much as the guarantee")
        if train.limits.mem is not None and train.limits.mem < resources.mem:
            problem = f"{train.limits.mem} MiB are less than the {resources.mem} MiB that {name} guarantees"
            settled.refuse((*path, "mem"), problem, "a limit is at least as much as the guarantee")


def _roles(train: Train) -> list[tuple[str, Resources]]:
    found = [("train.resources", train.resources)]
    cluster = None if train.tensorflow is None else train.tensorflow.distributed
    if cluster is not None:
        found = [
            ("the worker", cluster.worker_resources),
            ("the master", cluster.master_resources),
            ("the ps", cluster.ps_resources),
        ]
        if cluster.evaluator_resources is not None:
            found.append(("the evaluator", cluster.evaluator_resources))
    return found


def _env(settled: Settled, parameters: tuple[Parameter, ...]) -> tuple[EnvVariable, ...]:
    path = (*_TRAIN, "env")
    taken = {variable_name(parameter.name): parameter.name for parameter in parameters}
    value = settled.value_at(path)
    found: dict[str, EnvVariable] = {}
    parts = value if isinstance(value, dict) else range(len(value or ()))
    for part in parts:
        inner = (*path, part)
        text = settled.value_at(inner)
        if text is None:
            continue
        name, mark, content = (part, "=", text) if isinstance(part, str) else text.partition("=")
        if name in found:
            settled.refuse(inner, f"{name} is there twice", "keep one of them")
        if name in OWN or name.startswith("RISEML_"):
            settled.warn(inner, f"riseml sets {name} itself; this value is not used", "leave it out")
        if name in taken:
            problem = f"this and the parameter {taken[name]} would both set the environment variable {name}"
            settled.refuse(inner, problem, "give one of them another name")
        found[name] = EnvVariable(name, content if mark else None)
    return tuple(found.values())


def _retry(settled: Settled) -> Retry:
    path = (*_TRAIN, "retry")
    value = settled.value_at(path)
    if not isinstance(value, dict):
        return Retry(max=value or 0)
    on = settled.value_at((*path, "on"))
    kinds = [settled.value_at((*path, "on", index)) for index in range(len(on or ()))]
    scope = settled.value_at((*path, "scope"))
    return Retry(
        max=settled.value_at((*path, "max")) or 0,
        on=Retry().on if on is None else frozenset(RetryOn(kind) for kind in kinds if kind is not None),
        scope=Retry().scope if scope is None else RetryScope(scope),
    )


def _duration(settled: Settled, key: str, default: float | None) -> float | None:
    path = (*_TRAIN, key)
    text = settled.value_at(path)
    if text is None:
        return default
    try:
        return duration(text)
    except BadText as bad:
        settled.refuse(path, bad.problem, bad.hint)
        return default


def _notes(settled: Settled, train: Train) -> tuple[str, ...]:
    """Remarks on defaults that were filled in."""
    resources = train.resources
    filled = {
        "resources.cpus": f"each job is sure to get {resources.cpus:g} core{'' if resources.cpus == 1 else 's'}",
        "resources.mem": f"each job is sure to get {resources.mem} MiB of memory",
    }
    if train.framework == "tensorflow" and train.image is None:
        filled["tensorflow.version"] = f"it is {DEFAULT_TENSORFLOW}"
    return tuple(
        f"train.{key} is not set: {what}"
        for key, what in filled.items()
        if settled.value_at((*_TRAIN, *key.split("."))) is None
    )
