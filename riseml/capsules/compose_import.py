"""Convert a compose file to a riseml.yml: each service is a role."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from riseml.base.records import dataclass
from riseml.capsules.foreign_fields import (
    ForeignFields,
    ForeignValueError,
    ImportedConfig,
    join_words,
    name_project,
    quote_pieces,
    read_cores,
)
from riseml.capsules.imported_yaml import write_config
from riseml.spec.config.parameters import is_set_by_riseml
from riseml.spec.config.roles_section import RESERVED_NAMES, is_role_name

_REASONS = {
    "volumes": "jobs have the files of the project, OUTPUT_DIR, and DATA_DIR to read",
    "networks": "the jobs of an experiment have a network of their own",
    "ports": "every job reaches all ports of the others; `riseml forward` brings a port to you",
    "expose": "every job reaches all ports of the others",
    "restart": "write `retry` under `train`",
    "restart_policy": "write `retry` under `train`",
    "healthcheck": "`after` waits until a job answers on its port",
    "env_file": "name each variable in `env`",
    "extends": "write the keys of that service out",
    "secrets": "name each variable in `env`",
    "build": "`docker compose build` makes the image that the role names; or write the Dockerfile's steps as `install`",
    "hostname": "the name of a role is the name of its host",
    "container_name": "the name of a role is the name of its host",
    "user": "jobs run as the user who submits them",
    "privileged": "jobs have no privileges",
    "network_mode": "pool.yml has `network: host`",
    "ipc": "`shm_size` under `train` is the size of /dev/shm",
}
_BYTES = {"": 1, "b": 1, "k": 2**10, "kb": 2**10, "m": 2**20, "mb": 2**20, "g": 2**30, "gb": 2**30}
_MIB = 2**20
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)  # a variable that a shell can set
_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_LONGEST_ROLE = 25  # characters of a name that is made from that of a service; a number of three digits may follow
_VARIABLE = re.compile(
    r"\$(?:(?P<escaped>\$)|(?P<plain>[A-Za-z_]\w*)|\{(?P<name>[A-Za-z_]\w*)(?::?-(?P<default>[^{}]*)|:?\?[^{}]*)?\})"
)


@dataclass(frozen=True, slots=True)
class _ComposeService:
    """One service of the file."""

    name: str
    role: str  # the name of the role
    body: Mapping[str, Any]  # body of the role in riseml.yml, without `ends` and `after`
    needs: tuple[str, ...]  # names of the services that start before it
    port: int | None  # at which it answers; None: not known, so that no other one can wait for it
    shm: str  # size of /dev/shm; empty: none was written


class _ShellReferences:
    """The variables of the user's shell that a compose file reads, the defaults that it has for them, and the names of
    variables that no shell takes.
    """

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.defaults: dict[str, str] = {}
        self.left_out: list[str] = []

    def fill(self, text: str) -> str:
        """Return a text with the defaults in it; a variable without a default stays, and is noted."""
        return _VARIABLE.sub(self._replace, text)

    def quote(self, word: str) -> str:
        """Return a word of a command for a shell, in which the variables of the user's shell keep their meaning."""
        return quote_pieces(self._split(word))

    def _split(self, word: str) -> Iterator[tuple[str, bool]]:
        end = 0
        for match in _VARIABLE.finditer(word):
            yield word[end : match.start()], False
            value = self._replace(match)
            yield value, value == f"${{{match['plain'] or match['name']}}}"
            end = match.end()
        yield word[end:], False

    def _replace(self, match: re.Match[str]) -> str:
        if match["escaped"]:
            return "$"
        name = match["plain"] or match["name"]
        if match["default"] is not None:
            self.defaults[name] = match["default"]
            return match["default"]
        self.names.add(name)
        return f"${{{name}}}"


def convert_compose(document: ForeignFields, name: str) -> ImportedConfig:
    """Return the riseml.yml of a compose file.

    Args:
        document: the file.
        name: of its folder: compose names a project by it, when the file has no name.

    Raises:
        ForeignValueError: a value is not what compose takes.
    """
    document.take("version", *(key for key in document.names() if key.startswith("x-")))  # parts that services share
    project = name_project(document.text("name") or name)
    sections = document.section("services")
    references = _ShellReferences()
    names = _name_roles(sections.names())
    services = [_read_service(sections.section(key), key, names[key], project, references) for key in names]
    if not services:
        raise ForeignValueError("services", "a mapping with a service")
    roles: dict[str, Any] = {}
    needed = {need for service in services for need in service.needs}
    for service in sorted(services, key=lambda service: service.name in needed):
        roles[service.role] = dict(service.body) | _make_place(service, services, needed)
    train: dict[str, Any] = {"roles": roles}
    if sizes := [service.shm for service in services if service.shm]:
        train["shm_size"] = sizes[0]
    if references.names:
        train["env"] = sorted(references.names)
    left_out = (*map(_explain_left, document.list_left()), *references.left_out)
    changed = [
        f"service {service.name} is the role {service.role}, which is the name of its host, too"
        for service in services
        if service.role != service.name
    ]
    changed += [f"${key} is its default, {value}" for key, value in references.defaults.items()]
    changed += [
        f"depends_on of {service.name}: it starts together with {need.name}, of which the file names no port"
        for service in services
        for need in services
        if need.name in service.needs and need.port is None
    ]
    unnamed = [service.role for service in services if str(service.body["run"]).startswith("# Replace COMMAND")]
    to_fill = (
        f"replace COMMAND in `run` of {', '.join(unnamed)}: the file names no command, so it is that of the image;"
        f" `docker image inspect IMAGE` shows it as Entrypoint and Cmd"
    )
    text = write_config({"project": project, "train": train})
    return ImportedConfig(project, text, left_out, tuple(changed), to_fill if unnamed else "")


def _explain_left(path: str) -> str:
    reason = _REASONS.get(path.rpartition(".")[2])
    return f"{path}: {reason}" if reason else path


def _make_place(service: _ComposeService, services: Sequence[_ComposeService], needed: set[str]) -> dict[str, Any]:
    """Return what the end of a service means, and after which others it starts."""
    ports = {other.role: other.port for other in services if other.name in service.needs and other.port}
    return {"ends": "serves" if service.name in needed else "decides"} | ({"after": ports} if ports else {})


def _name_roles(services: Sequence[str]) -> dict[str, str]:
    """Return the name of the role of each service: small letters and `-`. A service whose name a role may have keeps
    it, because other services call it by this name.
    """
    roles = {service: service for service in services if is_role_name(service)}
    for service in services:
        if service in roles:
            continue
        spoken = re.sub(r"\d", lambda digit: f"-{_spell(int(digit[0]))}-", service.lower())
        role = re.sub(r"[^a-z]+", "-", spoken).strip("-")[:_LONGEST_ROLE].strip("-") or "service"
        if role in RESERVED_NAMES:
            role = f"{role}-service"
        names = itertools.chain([role], (f"{role}-{_spell(number)}" for number in itertools.count(2)))
        roles[service] = next(name for name in names if name not in roles.values())
    return {service: roles[service] for service in services}


def _spell(number: int) -> str:
    """Return the digits of a number as words: names of roles have none."""
    return "-".join(_DIGITS[int(digit)] for digit in str(number))


def _read_service(
    section: ForeignFields, name: str, role: str, project: str, references: _ShellReferences
) -> _ComposeService:
    deploy = section.section("deploy")
    image = references.fill(section.text("image")) or f"{project}-{name}"
    run = _make_run(section, image, references)
    body: dict[str, Any] = {"image": image, "run": run}
    count = deploy.whole("replicas", 1) if "replicas" in deploy else section.whole("scale", 1)
    if count != 1:
        body["count"] = count
    body["resources"] = _read_resources(section, deploy.section("resources"))
    section.take("tty", "stdin_open", "init")
    shm = section.text("shm_size")
    return _ComposeService(
        name=name,
        role=role,
        body=body,
        needs=tuple(_read_needs(section)),
        port=_find_port(section),
        shm=_read_bytes(shm, section.name_key("shm_size")) if shm else "",
    )


def _make_run(section: ForeignFields, image: str, references: _ShellReferences) -> str:
    """Return the lines of `run`: the variables, the working folder and the command of the service."""
    lines = [f"export {line}" for line in _read_variables(section, references)]
    if folder := section.text("working_dir"):
        lines.append(f"cd {references.quote(folder)}")
    entrypoint = _read_words(section, "entrypoint")
    command = _read_words(section, "command")
    if not entrypoint and not command:
        title = " ".join(image.split())  # a comment has one line
        comment = f"# Replace COMMAND: it stands for the command of the image {title}."
        return "\n".join([comment, *lines, "COMMAND"])
    words = [*entrypoint, *command]
    line = join_words(words, references.quote)
    if len(words) == 3 and line == words[2]:  # a script of a shell: its own quotes hold
        line = references.fill(line)
    return "\n".join([*lines, line])


def _read_words(section: ForeignFields, key: str) -> list[str]:
    """Return a command as words: compose reads a text as a shell does, without running one."""
    if not isinstance(section.peek(key), str):
        return section.words(key)
    try:
        return shlex.split(section.text(key))
    except ValueError:
        raise ForeignValueError(section.name_key(key), "a command: a quote is open") from None


def _read_variables(section: ForeignFields, references: _ShellReferences) -> Iterator[str]:
    """Yield the variables of a service as words of `export`."""
    if isinstance(section.peek("environment"), list):
        words = section.words("environment")
        pairs = [(word.partition("=")[0], word.partition("=")[2] if "=" in word else None) for word in words]
    else:
        variables = section.section("environment")
        pairs = [(key, variables.text(key) if key in variables else None) for key in variables.names()]
        variables.take(*variables.names())
    for name, value in pairs:
        if is_set_by_riseml(name, None):
            continue
        if not _NAME.fullmatch(name):
            references.left_out.append(f"{section.name_key('environment')}: no shell sets a variable named {name}")
            continue
        if value is None:
            references.names.add(name)  # its value comes from the user's shell
        else:
            yield f"{name}={references.quote(value)}"


def _read_resources(section: ForeignFields, resources: ForeignFields) -> dict[str, Any]:
    reserved = resources.section("reservations")
    limits = resources.section("limits")
    amounts: dict[str, Any] = {"cpus": 1.0}
    for part in (limits, reserved):
        if "cpus" in part:
            amounts["cpus"] = read_cores(part.text("cpus"), part.name_key("cpus"))
        if "memory" in part:
            amounts["mem"] = _read_bytes(part.text("memory"), part.name_key("memory"))
    if "cpus" in section:
        amounts["cpus"] = read_cores(section.text("cpus"), section.name_key("cpus"))
    for key in ("mem_limit", "mem_reservation"):
        if key in section:
            amounts["mem"] = _read_bytes(section.text(key), section.name_key(key))
    gpus = sum(_count_gpus(device) for device in reserved.sections("devices"))
    if isinstance(section.peek("gpus"), str) and section.text("gpus") == "all":
        gpus = 1
    return amounts | ({"gpus": gpus} if gpus else {})


def _count_gpus(device: ForeignFields) -> int:
    """Return the number of GPUs that a reservation names; all of a host count as one."""
    if "gpu" not in device.words("capabilities"):
        return 0
    device.take("driver")
    identifiers = device.words("device_ids")
    if "count" not in device or device.peek("count") == "all":
        device.take("count")
        return len(identifiers) or 1
    return device.whole("count", 1)


def _read_needs(section: ForeignFields) -> Iterator[str]:
    if isinstance(section.peek("depends_on"), list):
        yield from section.words("depends_on")
        return
    needs = section.section("depends_on")
    needs.take(*needs.names())
    yield from needs.names()


def _find_port(section: ForeignFields) -> int | None:
    """Return the first port that a service names: of `6379`, `8080:6379/tcp` or `target: 6379` it is 6379."""
    for key in ("ports", "expose"):
        ports = section.peek(key)
        for port in ports if isinstance(ports, list) else []:
            text = str(port.get("target", "")) if isinstance(port, dict) else str(port).rpartition(":")[2]
            match = re.match(r"\d{1,5}(?=$|/|-)", text)
            if match is not None and 0 < int(match[0]) < 2**16:
                return int(match[0])
    return None


def _read_bytes(text: str, path: str) -> str:
    """Return an amount of memory of compose as riseml.yml has it: `512MiB`."""
    match = re.fullmatch(r"(\d{1,18}(?:\.\d{1,9})?)\s*([a-z]{0,2})", text.strip().lower())
    if match is None or match[2] not in _BYTES:
        raise ForeignValueError(path, "an amount of memory")
    return f"{max(1, round(float(match[1]) * _BYTES[match[2]] / _MIB))}MiB"
