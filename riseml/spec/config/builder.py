"""Build a `Spec` from values that match the schema, and check the rules that a schema cannot express."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from riseml.base.annotations import BadAnnotation, read_name, read_note, read_tag
from riseml.spec.config.command_lines import read_lines, read_shell
from riseml.spec.config.dependent_parameters import check_dependencies
from riseml.spec.config.environment_section import read_environment
from riseml.spec.config.kernel_limits import check_sizes
from riseml.spec.config.outputs_key import read_outputs
from riseml.spec.config.parameters import check_placeholders, find_plugin, is_set_by_riseml, read_parameters
from riseml.spec.config.repeat import read_repeat
from riseml.spec.config.role_resources import read_resources
from riseml.spec.config.roles_section import RoleDefaults, has_own_images, list_role_names, read_role_lines, read_roles
from riseml.spec.config.search_section import read_search
from riseml.spec.config.secret_files import read_secret_files
from riseml.spec.config.sections import (
    read_data,
    read_inputs,
    read_jax,
    read_metrics,
    read_notify,
    read_on,
    read_pytorch,
    read_save,
    read_tensorflow,
    warn_of_bash_words,
)
from riseml.spec.config.types import (
    DEFAULT_JAX,
    DEFAULT_PYTORCH,
    DEFAULT_TENSORFLOW,
    EnvVariable,
    Limits,
    LogSection,
    Parameter,
    Resources,
    Retry,
    RetryOn,
    RetryScope,
    RunPolicy,
    Spec,
    StallRule,
    StallSection,
    Tracker,
    Train,
)
from riseml.spec.config.variable_names import name_variable, read_variable_names
from riseml.spec.scalars.quantities import parse_memory
from riseml.spec.scalars.texts import quote_text
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile, read_section

_TRAIN: KeyPath = ("train",)
_LEAST_MEMORY = 6  # MiB of a container; Docker refuses to make one with less
# Frameworks with an image and a section of `train` of this name, and its version when the file has none.
_SECTIONS = {"tensorflow": DEFAULT_TENSORFLOW, "pytorch": DEFAULT_PYTORCH, "jax": DEFAULT_JAX}


def build_spec(file: SourceFile) -> Spec:
    """Return the spec of a file. Problems go to `file`; with an error among them it is unusable."""
    image, install = read_environment(file, _TRAIN)
    framework = file.read((*_TRAIN, "framework"), str)
    limits = read_section(file, (*_TRAIN, "limits"), Limits)
    resources = read_resources(file, (*_TRAIN, "resources"), _default_resources(limits))
    tensorflow = read_tensorflow(file, image, resources)
    pytorch = read_pytorch(file, image, resources)
    jax = read_jax(file, resources)
    shell = read_shell(file, _TRAIN)
    roles = read_roles(file, RoleDefaults(resources, install, shell))
    run = read_lines(file, (*_TRAIN, "run"))
    parameters = read_parameters(file)
    repeat = read_repeat(file)
    warn_of_bash_words(file, list_role_names(file))
    _check_framework(file, framework, image)
    role_lines = read_role_lines(file)
    check_placeholders(file, {**run, **role_lines})
    check_dependencies(file, parameters, {**run, **role_lines})
    train = Train(
        run=tuple(run.values()),
        shell=shell,
        image=image,
        install=install,
        resources=resources,
        limits=limits,
        framework=framework,
        tensorflow=tensorflow,
        pytorch=pytorch,
        jax=jax,
        roles=roles,
        parameters=parameters,
        search=read_search(file, parameters, repeat or 0),
        repeat=repeat,
        concurrency=file.read((*_TRAIN, "concurrency"), int) or 1,
        env=_read_env(file, parameters),
        name="".join(_read_words(file, "name", read_name)),
        tags=_read_words(file, "tags", read_tag),
        notes="".join(_read_words(file, "notes", read_note)),
        finish_grace=file.read((*_TRAIN, "finish_grace"), float),
        policy=_read_policy(file),
    )
    _check_train(file, train)
    scripts = [
        {path: line for path, line in role_lines.items() if path[:3] == section}
        for section in {path[:3] for path in role_lines}
    ]
    check_sizes(file, train, [run, *scripts])
    return Spec(str(file.value_at(("project",))), train, notes=_list_notes(file, train))


def _read_policy(file: SourceFile) -> RunPolicy:
    return read_section(
        file,
        _TRAIN,
        RunPolicy,
        retry=_read_retry(file),
        metrics=read_metrics(file),
        data=read_data(file),
        inputs=read_inputs(file),
        notify=read_notify(file),
        save=read_save(file),
        variables=read_variable_names(file),
        outputs=read_outputs(file, _TRAIN),
        secrets=read_secret_files(file),
        track=_read_track(file),
        log=read_section(file, (*_TRAIN, "log"), LogSection),
        on=read_on(file),
        stall=read_section(file, (*_TRAIN, "stall"), StallSection),
    )


def _read_track(file: SourceFile) -> tuple[Tracker, ...]:
    path = (*_TRAIN, "track")
    if file.value_at(path) is False:
        return ()
    return tuple(dict.fromkeys(map(Tracker, file.items_at(path).values()))) or RunPolicy().track


def _check_train(file: SourceFile, train: Train) -> None:
    for check in (_check_memory, _check_limits, _check_gpus, _check_durations, _check_scope, _check_stall):
        check(file, train)


def _check_framework(file: SourceFile, framework: str | None, image: str | None) -> None:
    train = file.value_at(_TRAIN)
    if not isinstance(train, dict) or (*_TRAIN, "framework") in file.bad:
        return
    for section in sorted(_SECTIONS.keys() & train.keys() - {framework}):
        path = (*_TRAIN, section)
        if framework is None:
            file.refuse_key(
                path, "the section has no effect without a framework", f"write `framework: {section}` in train"
            )
            return
        file.refuse_key(path, f"the section does not apply to `framework: {framework}`", "remove it")
    if image is None and "image" not in train and framework not in _SECTIONS and not has_own_images(file):
        hint = "write `image: python:3.11`, or `framework: tensorflow`, `pytorch` or `jax`, which include one"
        file.refuse_key((*_TRAIN, "image"), "is missing", hint)


def _default_resources(limits: Limits) -> Resources:
    """Return the resources of a file without `resources`: the defaults, but never more than its limits."""
    default = Resources()
    cpus = default.cpus if limits.cpus is None else min(default.cpus, limits.cpus)
    return Resources(cpus, default.mem if limits.mem is None else min(default.mem, limits.mem), default.gpus)


def _check_memory(file: SourceFile, train: Train) -> None:
    """Refuse memory that is too little for any container; wherever the jobs run, so that a file is right or wrong."""
    sections = dict.fromkeys([_TRAIN, *(section for _, section, _ in _list_role_resources(train))])
    for path in ((*_TRAIN, "limits", "mem"), *((*section, "resources", "mem") for section in sections)):
        text = file.value_at(path)
        if text is not None and path not in file.bad and parse_memory(text) < _LEAST_MEMORY:
            problem = f"{text} is too little: an engine gives a container at least {_LEAST_MEMORY} MiB"
            file.refuse(path, problem, f"write {_LEAST_MEMORY}MiB or more")


def _check_limits(file: SourceFile, train: Train) -> None:
    path = (*_TRAIN, "limits")
    hint = "raise the limit, or lower the guarantee"
    for name, _, resources in _list_role_resources(train):
        if train.limits.cpus is not None and train.limits.cpus < resources.cpus:
            problem = f"the limit of {train.limits.cpus:g} is below the {resources.cpus:g} cores that {name} guarantees"
            file.refuse((*path, "cpus"), problem, hint)
        if train.limits.mem is not None and train.limits.mem < resources.mem:
            problem = f"the limit of {train.limits.mem} MiB is below the {resources.mem} MiB that {name} guarantees"
            file.refuse((*path, "mem"), problem, hint)


def _check_gpus(file: SourceFile, train: Train) -> None:
    """Refuse a model or memory of GPUs where no job asks for a GPU: in `train.resources`, or in a role."""
    holders = _list_role_resources(train)
    needs_gpus = {section: resources.gpus > 0 for _, section, resources in holders}
    words = dict.fromkeys(needs_gpus, "it asks for no GPU")
    if not any(needs_gpus.values()):
        words[_TRAIN] = "no job asks for a GPU"
    for section, problem in words.items():
        if needs_gpus.get(section) or (*section, "resources", "gpus") in file.bad:
            continue
        for key in ("gpu", "gpu_mem"):
            path = (*section, "resources", key)
            if file.value_at(path) is not None:
                file.refuse_key(path, f"says which GPUs, and {problem}", "write `gpus: 1` beside it")


def _list_role_resources(train: Train) -> list[tuple[str, KeyPath, Resources]]:
    """Return the resources of each kind of job: its name for people, the section that has its `resources`, and them."""
    if train.roles:
        return [(f"the role {role.name}", (*_TRAIN, "roles", role.name), role.resources) for role in train.roles]
    for name, section in (("pytorch", train.pytorch), ("jax", train.jax)):
        if section is not None and section.distributed is not None:
            group = section.distributed
            parts = {"worker": group.worker_resources, "master": group.master_resources}
            return _name_parts((*_TRAIN, name, "distributed"), parts)
    cluster = None if train.tensorflow is None else train.tensorflow.distributed
    if cluster is None:
        return [("train.resources", _TRAIN, train.resources)]
    parts = {"worker": cluster.worker_resources, "master": cluster.master_resources, "ps": cluster.ps_resources}
    if cluster.evaluator_resources is not None:
        parts["evaluator"] = cluster.evaluator_resources
    return _name_parts((*_TRAIN, "tensorflow", "distributed"), parts)


def _name_parts(section: KeyPath, parts: Mapping[str, Resources]) -> list[tuple[str, KeyPath, Resources]]:
    return [(f"the {part}", (*section, part), resources) for part, resources in parts.items()]


def _read_env(file: SourceFile, parameters: tuple[Parameter, ...]) -> tuple[EnvVariable, ...]:
    parameter_of = {name_variable(file, parameter.name): parameter.name for parameter in parameters}
    variables: dict[str, EnvVariable] = {}
    for inner, variable in _list_variables(file):
        name = variable.name
        if name in variables:
            file.refuse(inner, f"{name} is set twice", "keep one of them")
        if is_set_by_riseml(name, find_plugin(file), list_role_names(file)):
            file.warn(inner, f"riseml sets {name}; this value has no effect", "remove it")
        if name in parameter_of:
            problem = f"this and the parameter {parameter_of[name]} would both set the environment variable {name}"
            file.refuse(inner, problem, "rename one of them")
        variables[name] = variable
    return tuple(variables.values())


def _list_variables(file: SourceFile) -> Iterator[tuple[KeyPath, EnvVariable]]:
    """Yield the variables of `env` with their paths, from a map or a list, in which each secret is a map of its own."""
    for path, value in file.items_at((*_TRAIN, "env")).items():
        key = path[-1]
        if isinstance(value, dict) and isinstance(key, int):
            for inner, reference in file.items_at(path).items():
                name = str(inner[-1])
                if re.fullmatch("[A-Za-z_][A-Za-z0-9_]{0,199}", name, re.ASCII) is None:
                    file.refuse_key(inner, f"{quote_text(name)} is not the name of an environment variable")
                yield inner, EnvVariable(name, None, str(reference.get("secret", "")))
        elif isinstance(value, dict):
            yield path, EnvVariable(str(key), None, str(value.get("secret", "")))
        elif isinstance(key, str):
            yield path, EnvVariable(key, value)
        else:
            name, mark, content = value.partition("=")
            yield path, EnvVariable(name, content if mark else None)


def _read_words(file: SourceFile, key: str, read: Callable[[str], str]) -> tuple[str, ...]:
    """Return the texts of a key of `train` in their normal form, each once; none without the key."""
    words: dict[str, None] = {}
    for path, text in file.items_at((*_TRAIN, key)).items():
        try:
            words[read(text)] = None
        except BadAnnotation as bad:
            file.refuse(path, bad.problem, bad.hint)
    return tuple(words)


def _read_retry(file: SourceFile) -> Retry:
    path = (*_TRAIN, "retry")
    value = file.value_at(path)
    most = 0 if isinstance(value, dict) else int(value or 0)
    kinds = frozenset(map(RetryOn, file.items_at((*path, "on")).values()))
    return read_section(file, path, Retry, Retry(most, kinds or Retry().on))


def _check_durations(file: SourceFile, train: Train) -> None:
    for key in ("max_duration", "idle_timeout"):
        if getattr(train.policy, key) == 0:
            file.refuse((*_TRAIN, key), "must be more than 0", "remove it for runs without a limit")


def _check_stall(file: SourceFile, train: Train) -> None:
    path = (*_TRAIN, "stall")
    if train.policy.stall.after == 0:
        file.refuse((*path, "after"), "must be more than 0", "remove it: then the rhythm of the run says how long")
    if train.policy.stall.then is StallRule.RETRY and not train.policy.retry.max:
        file.refuse(
            (*path, "then"), "`retry` has no attempt left to give", "write `retry: 2` in train, or `then: fail`"
        )


def _check_scope(file: SourceFile, train: Train) -> None:
    """Refuse `scope: role` where a job that starts again alone cannot join its group."""
    group = _find_fixed_group(train)
    if train.policy.retry.scope is RetryScope.ROLE and group:
        problem = f"a job that starts again alone cannot join its {group} again, and the others would wait for it"
        file.refuse((*_TRAIN, "retry", "scope"), problem, "write `scope: experiment`: all of them start again")


def _find_fixed_group(train: Train) -> str:
    """Return the kind of group whose jobs meet only at their start; empty without such a group, or when it has one
    job."""
    for section in (train.tensorflow, train.pytorch):
        if section is not None and section.horovod is not None and section.horovod.workers > 1:
            return "group of Horovod"
    for name, group in (("PyTorch", train.pytorch), ("JAX", train.jax)):
        if group is not None and group.distributed is not None and group.distributed.workers > 1:
            return f"process group of {name}"
    return ""


def _uses_horovod(train: Train) -> bool:
    return any(section is not None and section.horovod is not None for section in (train.tensorflow, train.pytorch))


def _list_notes(file: SourceFile, train: Train) -> tuple[str, ...]:
    """Return remarks about the defaults that apply."""
    resources = train.resources
    filled = {
        "resources.cpus": f"each job is sure to get {resources.cpus:g} core{'' if resources.cpus == 1 else 's'}",
        "resources.mem": f"each job is sure to get {resources.mem} MiB of memory",
    }
    version = {"tensorflow": DEFAULT_TENSORFLOW, "pytorch": DEFAULT_PYTORCH, "jax": DEFAULT_JAX}.get(
        train.framework or ""
    )
    if version is not None and train.image is None and not _uses_horovod(train):
        filled[f"{train.framework}.version"] = f"it is {version}"
    return tuple(
        f"train.{key} is not set: {default}"
        for key, default in filled.items()
        if file.value_at((*_TRAIN, *key.split("."))) is None
    )
