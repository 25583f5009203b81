"""The `roles` section: the user's own kinds of jobs, which of them decides, and in which order they start."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from riseml.base.records import dataclass
from riseml.spec.config.command_lines import read_lines, read_shell
from riseml.spec.config.environment_section import read_environment
from riseml.spec.config.outputs_key import read_outputs
from riseml.spec.config.role_resources import read_resources
from riseml.spec.config.types import Resources, RoleEnd, RoleSection, Shell
from riseml.spec.scalars.texts import quote_text
from riseml.spec.schema.contract import CONFIG_CONTRACT
from riseml.spec.schema.near_words import suggest_word
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile

_PATH: KeyPath = ("train", "roles")
_RUN: KeyPath = ("train", "run")
JOBS_OF_RISEML = frozenset({"build", "tensorboard", "notebook"})
_LOCALHOST = "localhost"
_TAKEN_VARIABLES = {  # names of roles whose variables mean something else
    "role": "ROLE_HOST",  # the job's own
    "riseml": "RISEML_HOST",
    "docker": "DOCKER_HOST",  # the engine that every Docker client asks
    "ray": "RAY_ADDRESS",  # the cluster that ray.init() joins
}
RESERVED_NAMES = JOBS_OF_RISEML | {_LOCALHOST, *_TAKEN_VARIABLES}
"""Names that no role may have."""

_MOST_JOBS = 1_000  # jobs; all addresses are in one variable, and Linux allows at most 128 KiB for each variable

Waits = tuple[tuple[str, int | None], ...]


@dataclass(frozen=True, slots=True)
class RoleDefaults:
    """What a role takes from `train` for each key that the role leaves out."""

    resources: Resources
    install: tuple[str, ...]  # for roles without an image of their own
    shell: Shell


def is_role_name(text: str) -> bool:
    """Return True when a role may have a text as its name."""
    names = CONFIG_CONTRACT.at(_PATH)["propertyNames"]
    fits = len(text) <= names["maxLength"] and re.fullmatch(names["pattern"], text) is not None
    return fits and text not in RESERVED_NAMES


def list_role_names(file: SourceFile) -> tuple[str, ...]:
    """Return the names of the roles, in the order of the file; none without the section."""
    section = file.value_at(_PATH)
    return tuple(section) if isinstance(section, dict) else ()


def read_role_lines(file: SourceFile) -> dict[KeyPath, str]:
    """Return the command lines of all roles by path."""
    names = list_role_names(file)
    return {path: line for name in names for path, line in read_lines(file, (*_PATH, name, "run")).items()}


def has_own_images(file: SourceFile) -> bool:
    """Return True when there are roles and each of them names an image, so that `train` needs none."""
    names = list_role_names(file)
    return bool(names) and all(file.value_at((*_PATH, name, "image")) is not None for name in names)


def read_roles(file: SourceFile, defaults: RoleDefaults) -> tuple[RoleSection, ...]:
    """Return the roles; none without the section. Problems go to `file`.

    Args:
        file: the file.
        defaults: what `train` says.
    """
    names = list_role_names(file)
    if not names:
        return ()
    _check_beside(file)
    for name in names:
        _check_name(file, name)
    common = tuple(read_lines(file, _RUN).values())
    ends = _choose_ends(file, names)
    roles = tuple(_read_role(file, name, defaults, (common, ends[name])) for name in names)
    _check_cycles(file, {role.name: role.after for role in roles})
    jobs = sum(role.count or 1 for role in roles)
    if jobs > _MOST_JOBS:
        file.refuse_key(_PATH, f"the roles are {jobs:,} jobs; at most {_MOST_JOBS:,} are allowed", "lower a `count`")
    _warn_of_no_effect(file, names)
    return roles


def _warn_of_no_effect(file: SourceFile, names: Sequence[str]) -> None:
    """Warn of a key of `train` that has no effect, because each role has its own."""
    own = {
        "run": ("a `run` of its own", ("run",)),
        "image": ("an `image` of its own", ("image",)),
        "install": ("an `image` or `install` of its own", ("image", "install")),
    }
    for key, (reason, instead) in own.items():
        written = all(any(file.value_at((*_PATH, name, other)) is not None for other in instead) for name in names)
        if written and file.value_at(("train", key)) is not None:
            file.warn(("train", key), f"every role has {reason}; this one has no effect", "remove it")


def _read_role(
    file: SourceFile, name: str, defaults: RoleDefaults, common: tuple[tuple[str, ...], RoleEnd]
) -> RoleSection:
    path = (*_PATH, name)
    lines, end = common
    own = tuple(read_lines(file, (*path, "run")).values())
    if not own and not lines and path not in file.bad and not _has_bad_run(file, path):
        hint = f"write `run: python {name}.py` in the role, or a `run` in train for all roles"
        file.refuse_key((*path, "run"), "is missing", hint)
    image, install = read_environment(file, path)
    return RoleSection(
        name=name,
        run=own or lines,
        count=file.value_at((*path, "count")),
        resources=read_resources(file, (*path, "resources"), defaults.resources),
        ends=end,
        after=_read_after(file, name),
        image=image,
        install=install or (defaults.install if image is None else ()),
        shell=read_shell(file, path, defaults.shell),
        outputs=read_outputs(file, path),
    )


def _has_bad_run(file: SourceFile, path: KeyPath) -> bool:
    """Return True when a `run` was written and has a problem of its own: a second sentence would not help."""
    return any(bad[: len(prefix)] == prefix for prefix in ((*path, "run"), _RUN) for bad in file.bad)


def _check_beside(file: SourceFile) -> None:
    """Refuse a framework beside the roles: each says which jobs there are."""
    path = ("train", "framework")
    framework = file.value_at(path)
    if framework is None:
        return
    line = file.find_key_position(path).line
    file.refuse_key(
        _PATH,
        f"`roles` and `framework: {framework}` (line {line}) both say which jobs there are",
        "remove `roles`, or remove `framework` with its section and write the `image` that the roles need",
    )


def _check_name(file: SourceFile, name: str) -> None:
    if name not in RESERVED_NAMES:
        return
    if name in JOBS_OF_RISEML:
        problem = f"riseml itself has a job named {name}"
    elif name == _LOCALHOST:
        problem = "in every job this name leads to the job itself"
    else:
        problem = f"the role would set {_TAKEN_VARIABLES[name]}, which has another meaning"
    file.refuse_key((*_PATH, name), problem, "rename the role")


def _choose_ends(file: SourceFile, names: Sequence[str]) -> dict[str, RoleEnd]:
    """Return what the end of each role means. Unless a role has `ends: decides`, the first role without `ends`
    decides."""
    written = {name: file.value_at((*_PATH, name, "ends")) for name in names}
    unclear = any((*_PATH, name) in file.bad or (*_PATH, name, "ends") in file.bad for name in names)
    silent = [name for name in names if written[name] is None]
    ends = {name: RoleEnd.HELPS if end is None else RoleEnd(end) for name, end in written.items()}
    if RoleEnd.DECIDES not in ends.values():
        if silent:
            ends[silent[0]] = RoleEnd.DECIDES
        elif not unclear:
            hint = f"write `ends: decides` in the role whose exit code is the result, such as {names[0]}"
            file.refuse_key(_PATH, "no role decides how the experiment ends", hint)
    return ends


def _read_after(file: SourceFile, name: str) -> Waits:
    """Return the roles that a role waits for, each with its port; None stands for the port that riseml gives to each
    job."""
    path = (*_PATH, name, "after")
    value = file.value_at(path)
    if isinstance(value, dict):
        written = {other: ((*path, other), file.value_at((*path, other))) for other in value}
    else:
        written = {other: (part, None) for part, other in file.items_at(path).items()}
    names = list_role_names(file)
    positions: dict[str, int | None] = {}
    for other, (part, port) in written.items():
        if other == name:
            file.refuse_key(part, "a role cannot wait for itself", "remove it")
        elif other not in names:
            near = suggest_word(other, list(names))
            hint = f'did you mean "{near}"?' if near else f"the roles are {', '.join(names)}"
            file.refuse_key(part, f"there is no role {quote_text(other)}", hint)
        else:
            positions[other] = port
    return tuple(positions.items())


def _check_cycles(file: SourceFile, waits: Mapping[str, Waits]) -> None:
    """Refuse roles that wait for each other; each circle is one problem."""
    finished: set[str] = set()
    for first in waits:
        way: list[str] = []
        _follow(first, way, finished, (file, waits))


def _follow(name: str, way: list[str], finished: set[str], where: tuple[SourceFile, Mapping[str, Waits]]) -> None:
    file, waits = where
    if name in way:
        circle = [*way[way.index(name) :], name]
        problem = f"the roles would wait for each other forever: {' after '.join(circle)}"
        file.refuse_key((*_PATH, name, "after"), problem, "remove one of them")
        return
    if name in finished:
        return
    way.append(name)
    for other, _ in waits[name]:
        _follow(other, way, finished, where)
    way.pop()
    finished.add(name)
