"""Virtual environments by content: made once with uv, shared by experiments, never changed afterwards.

An environment is made where it stays, since it cannot be moved; it is there when its `.ready` is there, which is
written last. A lock that the installing processes inherit keeps a second build out until the last of them has ended,
even when the server that began the first one was killed.
"""

from __future__ import annotations

import configparser
import fcntl
import hashlib
import json
import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

from uv import find_uv_bin

from riseml.errors import EngineError
from riseml.executors.base import BuildOrder
from riseml.executors.capabilities import InventoryItem, InventoryKind
from riseml.executors.process.build_step import Step, run_step
from riseml.executors.process.job_folders import remove_tree
from riseml.executors.process.project_files import unpack_project
from riseml.model import ImageSeen

_SCHEME = 1  # a new number makes every environment anew
_READY = ".ready"
_PROJECT = "project"
_LOOK = 0.2  # seconds between two attempts to get the lock
_TENSORFLOW = re.compile(
    r"(?:docker\.io/)?tensorflow/tensorflow(?::(?:latest|(?P<version>\d+(?:\.\d+)*(?:rc\d+)?))(?:-(?:gpu|jupyter|py3))*)?"
)
_ROOT = frozenset({"apt", "apt-get", "aptitude", "dpkg", "yum", "dnf", "microdnf", "apk", "zypper", "pacman", "sudo"})
_PREFIXES = frozenset({"env", "exec", "time", "nice", "then", "else", "do", "!", "{"})
_FOREIGN = re.compile(r"RISEML_|VIRTUAL_ENV$|PYTHON(PATH|HOME)$|CONDA_|PIP_(USER|TARGET|PREFIX)$|UV_(PYTHON|PROJECT)")
_SEE = "the lines above tell why: `riseml logs` shows them"
_DOCKER = "the docker executor can: start a Docker Engine, or name one in DOCKER_HOST"


class Environments:
    """The environments below one folder.

    Args:
        root: where they are.
        gpus: whether their packages are those for GPUs.
    """

    def __init__(self, root: Path, *, gpus: bool) -> None:
        self._root = root
        self._gpus = gpus

    def folder(self, reference: str) -> Path:
        """Where the environment is, or would be."""
        python = [platform.python_implementation(), *sys.version_info[:2], sys.base_prefix, platform.machine()]
        recipe = json.dumps([_SCHEME, reference, python, self._gpus])
        return self._root / hashlib.sha256(recipe.encode()).hexdigest()[:20]

    def look(self, reference: str) -> ImageSeen:
        """Whether it is there. One whose Python was removed from the machine is not."""
        folder = self.folder(reference)
        return ImageSeen(present=(folder / _READY).exists() and (folder / "bin" / "python").exists())

    def variables(self, reference: str, path: str) -> dict[str, str]:
        """What a process needs to be in the environment; `path` is its PATH outside."""
        folder = self.folder(reference)
        return {"VIRTUAL_ENV": str(folder), "PATH": f"{folder / 'bin'}:{path}"}

    def inventory(self, server: str, references: frozenset[str]) -> Iterator[InventoryItem]:
        """Every environment that is there, whole or not; `references` are the names that one may have."""
        names = {self.folder(reference).name: reference for reference in references}
        for folder in sorted(self._root.glob("*/")):
            made_at = datetime.fromtimestamp(folder.stat().st_mtime, UTC)
            reference = names.get(folder.name, "")
            name = f"environments/{folder.name}"
            yield InventoryItem(
                InventoryKind.ENVIRONMENT,
                folder.name,
                name,
                server,
                None,
                reference,
                size=_size(folder),
                made_at=made_at,
            )

    def remove(self, name: str) -> None:
        """Remove an environment; one that is gone is no error.

        Raises:
            EngineError: it is being made just now.
        """
        folder = self._root / name
        if not folder.is_dir() or folder.parent != self._root:
            return
        lock = os.open(folder.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not _lock(lock):
                raise EngineError(f"the environment {name} is being made", "try again when its build has ended")
            remove_tree(folder)
        finally:
            os.close(lock)

    def ensure(self, order: BuildOrder) -> None:
        """Make the environment when it is missing.

        Raises:
            EngineError: a step needs root, a step failed, or the order was cancelled.
        """
        _refuse_root(order.image.install)
        folder = self.folder(order.image.reference)
        self._root.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _locked(folder.with_suffix(".lock"), order) as lock:
            if self.look(order.image.reference).present:
                return
            remove_tree(folder)
            self._make(order, folder, lock)
            (folder / _READY).touch()

    def _make(self, order: BuildOrder, folder: Path, lock: int) -> None:
        image = order.image
        packages, remark = choose_packages(image.base, gpus=self._gpus)
        python = f"Python {platform.python_version()}"
        order.emit(f"Making a virtual environment with {python}{''.join(f', {name}' for name in packages)}")
        if remark:
            order.emit(remark)
        step = Step([], self._root, _environ(self.variables(image.reference, os.environ.get("PATH", os.defpath))), lock)
        _make_empty(step, order, folder, needed=bool(packages or image.install))
        if packages:
            into = ["--compile-bytecode", "--python", str(folder / "bin" / "python")]
            if run_step(step.do([find_uv_bin(), "pip", "install", *into, *packages]), order) != 0:
                raise EngineError(
                    f"{packages[0]} cannot be installed for {python}", f"{_SEE}; {_DOCKER}", permanent=True
                )
        _unpack(order, folder / _PROJECT)
        for number, line in enumerate(image.install, 1):
            order.emit(f"--> {line}")
            code = run_step(Step(["/bin/sh", "-ec", line], folder / _PROJECT, step.environ, lock), order)
            if code != 0:
                raise EngineError(f"install step {number} failed with exit code {code}: {line}", permanent=True)


def _make_empty(step: Step, order: BuildOrder, folder: Path, *, needed: bool) -> None:
    """A new environment with pip in it, which `needed` insists on: fetching pip takes the package index."""
    command = [find_uv_bin(), "venv", "--quiet", "--python", sys.executable]
    if run_step(step.do([*command, "--seed", str(folder)]), order) == 0:
        return
    remove_tree(folder)
    if needed or run_step(step.do([*command, str(folder)]), order) != 0:
        raise EngineError("a virtual environment cannot be made", _SEE, permanent=True)
    order.emit("pip cannot be fetched, so that the environment has none")


def choose_packages(base: str, *, gpus: bool) -> tuple[tuple[str, ...], str]:
    """What stands for an image here, and a remark when that is not what the image has."""
    found = _TENSORFLOW.fullmatch(base)
    if found is None:
        return (), f"The image {base} is not used: jobs run without Docker; what they need goes into train.install"
    pin = f"=={found['version']}" if found["version"] else ""
    if platform.machine() not in ("x86_64", "AMD64"):
        name = "tensorflow"  # has no variants there
    else:
        name = "tensorflow[and-cuda]" if gpus else "tensorflow-cpu"
    return (f"{name}{pin}", "tensorboard"), ""


def _refuse_root(install: tuple[str, ...]) -> None:
    """Refuse lines that would change the machine, before anything is installed."""
    for number, line in enumerate(install, 1):
        for command in re.split(r"[;&|(\n]+", line):
            words = [word for word in command.split() if not re.match(r"\w+=|-", word) and word not in _PREFIXES]
            if words and os.path.basename(words[0]) in _ROOT:
                raise EngineError(
                    f"install step {number} installs into the whole machine, which jobs without Docker may not: {line}",
                    _DOCKER,
                    permanent=True,
                )


@contextmanager
def _locked(path: Path, order: BuildOrder) -> Iterator[int]:
    """Hold the lock of an environment; one build at a time."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        cancelled = Event()
        order.cancellation.attach(cancelled.set)
        waiting = False
        while not _lock(lock):
            if not waiting:
                order.emit("Waiting for another build of the same environment")
            waiting = True
            cancelled.wait(_LOOK)
            order.cancellation.check()
        yield lock
    finally:
        os.close(lock)


def _size(folder: Path) -> int:
    """The bytes of all files below."""
    total = 0
    for place, _, names in os.walk(folder):
        total += sum(os.lstat(os.path.join(place, name)).st_size for name in names)
    return total


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _unpack(order: BuildOrder, target: Path) -> None:
    """Unpack the project's files that the steps may read. They stay: `pip install -e` points to them."""
    target.mkdir()
    if order.snapshot is not None and order.image.files:
        unpack_project(order.snapshot, target, frozenset(order.image.files))


def _environ(variables: Mapping[str, str]) -> dict[str, str]:
    """The server's environment without what would lead the installers astray."""
    kept = {name: value for name, value in os.environ.items() if not _FOREIGN.match(name)}
    index = None if {"UV_DEFAULT_INDEX", "UV_INDEX_URL"} & kept.keys() else kept.get("PIP_INDEX_URL") or _pip_index()
    settings = {
        "NO_COLOR": "1",
        "UV_NO_PROGRESS": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
        "PIP_PROGRESS_BAR": "off",
        "PIP_ROOT_USER_ACTION": "ignore",
        "PYTHONUNBUFFERED": "1",
    }
    return {**kept, **settings, **({"UV_DEFAULT_INDEX": index} if index else {}), **variables}


def _pip_index() -> str | None:
    """The package index of pip's own settings, which uv does not read: a company's mirror is often named only there."""
    parser = configparser.RawConfigParser()
    home = Path.home()
    places = ("/etc/pip.conf", home / ".pip" / "pip.conf", home / ".config" / "pip" / "pip.conf")
    try:
        parser.read([*places, os.environ.get("PIP_CONFIG_FILE", "")])
    except (configparser.Error, UnicodeDecodeError):
        return None
    return parser.get("global", "index-url", fallback=None)
