"""Virtual environments by content: uv makes one once, experiments share it, nothing changes it afterwards.

An environment is made where it stays, because it cannot be moved. It is present when its `.ready` file is, which is
written last. The installing processes inherit a lock, so that a second build waits until the last of them has ended,
even when the server that started the first build was killed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

from uv import find_uv_bin

from riseml.errors import EngineError
from riseml.executors.base import BuildOrder, Work, WorkReport
from riseml.executors.capabilities import EnvironmentReview, InventoryItem, InventoryKind
from riseml.executors.environments.build_step import BuildStep, run_build_step
from riseml.executors.environments.project_files import unpack_project
from riseml.executors.environments.venv_recipe import (
    DOCKER_HINT,
    choose_packages,
    make_installer_variables,
    refuse_root_commands,
)
from riseml.executors.removal import remove_tree
from riseml.model import Image, ImageSeen
from riseml.planning.image import parse_packages

_SCHEME = 1  # a new number replaces every environment
_READY = ".ready"
_PROJECT = "project"
_PACKAGES = "packages.txt"  # what the steps left, as `pip freeze` writes it
_FREEZE_TIMEOUT = 60.0  # seconds
_LOCK_INTERVAL = 0.2  # seconds between two attempts to get the lock
_SEE_LOG = "the lines above say why: `riseml logs` shows them"

log = logging.getLogger(__name__)


class VirtualEnvironments:
    """The virtual environments below one folder.

    Args:
        root: the folder.
        gpus: whether they get the packages for GPUs.
    """

    def __init__(self, root: Path, *, gpus: bool) -> None:
        self._root = root
        self._gpus = gpus

    def find_folder(self, reference: str) -> Path:
        """Return the folder of an environment, which may not exist yet."""
        python = [platform.python_implementation(), *sys.version_info[:2], sys.base_prefix, platform.machine()]
        recipe = json.dumps([_SCHEME, reference, python, self._gpus])
        return self._root / hashlib.sha256(recipe.encode()).hexdigest()[:20]

    def made_files_folder(self, reference: str) -> Path:
        """Return the folder in which the install steps of an environment ran; it holds the files that they made."""
        return self.find_folder(reference) / _PROJECT

    def observe_environment(self, reference: str) -> ImageSeen:
        """Return whether an environment is present. An environment whose Python was removed from the machine is not."""
        folder = self.find_folder(reference)
        return ImageSeen(present=(folder / _READY).exists() and (folder / "bin" / "python").exists())

    def list_packages(self, reference: str) -> tuple[str, ...] | None:
        """Return the packages that an environment had when it was made; None: not known."""
        try:
            text = (self.find_folder(reference) / _PACKAGES).read_text("utf-8", "replace")
        except OSError:
            return None
        return parse_packages(text)

    def make_variables(self, reference: str, path: str) -> dict[str, str]:
        """Return the variables that put a process into an environment.

        Args:
            reference: of the environment.
            path: the PATH of the process outside the environment.
        """
        folder = self.find_folder(reference)
        return {"VIRTUAL_ENV": str(folder), "PATH": f"{folder / 'bin'}:{path}"}

    def list_environments(self, server: str, references: frozenset[str]) -> Iterator[InventoryItem]:
        """Yield every environment, complete or not.

        Args:
            server: id of the server that owns them.
            references: environments that may be present; the name of a folder alone does not identify one.
        """
        names = {self.find_folder(reference).name: reference for reference in references}
        for folder in sorted(self._root.glob("*/")):
            made_at = datetime.fromtimestamp(folder.stat().st_mtime, UTC)
            yield InventoryItem(
                InventoryKind.ENVIRONMENT,
                folder.name,
                f"environments/{folder.name}",
                server,
                None,
                names.get(folder.name, ""),
                size=_measure_folder(folder),
                made_at=made_at,
            )

    def remove_environment(self, name: str) -> None:
        """Remove an environment, if it is there.

        Raises:
            EngineError: a build makes it at this moment.
        """
        folder = self._root / name
        if not folder.is_dir() or folder.parent != self._root:
            return
        lock = os.open(folder.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not _try_lock(lock):
                raise EngineError(f"the environment {name} is being made", "try again when its build has ended")
            remove_tree(folder)
        finally:
            os.close(lock)

    def review_environment(self, image: Image) -> EnvironmentReview:
        """Return the environment that `ensure_environment` would make of an image, or why it would refuse."""
        packages, _ = choose_packages(image.base, gpus=self._gpus)
        parts = [f"Python {platform.python_version()}", *packages]
        try:
            refuse_root_commands(image.install)
        except EngineError as error:
            return EnvironmentReview(_describe_environment(parts), error.message)
        return EnvironmentReview(_describe_environment(parts))

    def ensure_environment(self, order: BuildOrder) -> None:
        """Make the environment unless it is present.

        Raises:
            EngineError: a step needs root, a step failed, or the order was cancelled.
        """
        refuse_root_commands(order.image.install)
        folder = self.find_folder(order.image.reference)
        self._root.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _hold_lock(folder.with_suffix(".lock"), order) as lock:
            if self.observe_environment(order.image.reference).present:
                return
            remove_tree(folder)
            self._make_environment(order, folder, lock)
            (folder / _READY).touch()

    def _make_environment(self, order: BuildOrder, folder: Path, lock: int) -> None:
        image = order.image
        packages, remark = choose_packages(image.base, gpus=self._gpus)
        added = "".join(f", {name}" for name in packages)
        order.emit(f"Making a virtual environment with Python {platform.python_version()}{added}")
        if remark:
            order.emit(remark)
        variables = self.make_variables(image.reference, os.environ.get("PATH", os.defpath))
        step = BuildStep([], self._root, make_installer_variables(variables), lock)
        _make_empty_environment(step, order, folder, needs_pip=bool(packages or image.install))
        _install_packages(step, order, folder, packages)
        _unpack_step_files(order, folder / _PROJECT)
        for number, line in enumerate(image.install, 1):
            order.report(WorkReport(Work.INSTALL, line, number, len(image.install)))
            order.emit(f"--> {line}")
            install = BuildStep(["/bin/sh", "-ec", line], folder / _PROJECT, step.environ, lock)
            code = run_build_step(install, order)
            if code != 0:
                raise EngineError(f"install step {number} failed with exit code {code}: {line}", permanent=True)
        _record_packages(folder, step)


def _record_packages(folder: Path, step: BuildStep) -> None:
    """Record the packages of an environment; without an answer of uv there is no list."""
    command = [find_uv_bin(), "pip", "freeze", "--python", str(folder / "bin" / "python")]
    try:
        found = subprocess.run(
            command, cwd=folder, env=dict(step.environ), capture_output=True, timeout=_FREEZE_TIMEOUT, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        log.warning("the packages of the environment %s are not known: %s", folder.name, error)
        return
    (folder / _PACKAGES).write_bytes(found.stdout)


def _describe_environment(parts: list[str]) -> str:
    return f"a virtual environment with {', '.join(parts)}"


def _make_empty_environment(step: BuildStep, order: BuildOrder, folder: Path, *, needs_pip: bool) -> None:
    """Make an environment with pip. Fetching pip takes the package index; without `needs_pip`, its failure is no
    failure of the build.
    """
    command = [find_uv_bin(), "venv", "--quiet", "--python", sys.executable]
    if run_build_step(step.with_command([*command, "--seed", str(folder)]), order) == 0:
        return
    remove_tree(folder)
    if needs_pip or run_build_step(step.with_command([*command, str(folder)]), order) != 0:
        raise EngineError("a virtual environment cannot be made", _SEE_LOG, permanent=True)
    order.emit("pip cannot be fetched, so the environment has none")


def _install_packages(step: BuildStep, order: BuildOrder, folder: Path, packages: tuple[str, ...]) -> None:
    if not packages:
        return
    into = ["--compile-bytecode", "--python", str(folder / "bin" / "python")]
    command = step.with_command([find_uv_bin(), "pip", "install", *into, *packages])
    if run_build_step(command, order) != 0:
        raise EngineError(
            f"{packages[0]} cannot be installed for Python {platform.python_version()}",
            f"{_SEE_LOG}; {DOCKER_HINT}",
            permanent=True,
        )


def _unpack_step_files(order: BuildOrder, target: Path) -> None:
    """Unpack the project's files that the steps may read. They stay: `pip install -e` points to them."""
    target.mkdir()
    if order.project is not None and order.image.files:
        unpack_project(order.project, target, frozenset(order.image.files))


@contextmanager
def _hold_lock(path: Path, order: BuildOrder) -> Iterator[int]:
    """Hold the lock of an environment, so that one build at a time makes it."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        cancelled = Event()
        order.cancellation.attach(cancelled.set)
        waiting = False
        while not _try_lock(lock):
            if not waiting:
                order.emit("Waiting for another build of the same environment")
            waiting = True
            cancelled.wait(_LOCK_INTERVAL)
            order.cancellation.check()
        yield lock
    finally:
        os.close(lock)


def _measure_folder(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    total = 0
    for place, _, names in os.walk(folder):
        total += sum(os.lstat(os.path.join(place, name)).st_size for name in names)
    return total


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
