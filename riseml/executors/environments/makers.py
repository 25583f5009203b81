"""Makers of virtual environments: this machine, or a machine with the Python that will use them."""

from __future__ import annotations

import logging
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Protocol

from uv import find_uv_bin

from riseml.errors import EngineError
from riseml.executors.base import BuildOrder, Work, WorkReport
from riseml.executors.environments.build_step import BuildStep, run_build_step
from riseml.executors.environments.project_files import unpack_project
from riseml.executors.environments.venv_recipe import DOCKER_HINT, make_installer_variables
from riseml.executors.removal import remove_tree
from riseml.planning.image import make_step_command
from riseml.records import dataclass

READY = ".ready"  # this file exists in a complete environment
PROJECT = "project"
PACKAGES = "packages.txt"  # the packages after the steps, as `pip freeze` writes them
_FREEZE_TIMEOUT = 60.0  # seconds
_SEE_LOG = "the lines above say why: `riseml logs` shows them"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EnvironmentOrder:
    """One environment to make."""

    build: BuildOrder
    folder: Path  # where the environment is made and stays
    packages: tuple[str, ...]  # packages that replace its image


class EnvironmentMaker(Protocol):
    """Makes environments for one kind of Python."""

    def identify_python(self) -> list[object]:
        """Return what an environment depends on, beside its recipe."""

    def describe_python(self) -> str:
        """Return the Python of the environments, for people."""

    def has_python(self, folder: Path) -> bool:
        """Return whether an environment has its Python."""

    def make_environment(self, order: EnvironmentOrder, lock: int) -> None:
        """Make an environment; first remove the rest of an earlier attempt, unless that one is still running.

        Args:
            order: the environment to make.
            lock: descriptor of the file that stays locked until the environment is made.

        Raises:
            EngineError: a step failed, or the order was cancelled.
        """


class ThisMachineMaker:
    """Makes environments by processes of this machine, for its own Python."""

    def identify_python(self) -> list[object]:
        return [platform.python_implementation(), *sys.version_info[:2], sys.base_prefix, platform.machine()]

    def describe_python(self) -> str:
        return f"Python {platform.python_version()}"

    def has_python(self, folder: Path) -> bool:
        return (folder / "bin" / "python").exists()

    def make_environment(self, order: EnvironmentOrder, lock: int) -> None:
        build, folder, install = order.build, order.folder, order.build.image.install
        remove_tree(folder)
        variables = make_environment_variables(folder, os.environ.get("PATH", os.defpath))
        step = BuildStep([], folder.parent, make_installer_variables(variables), lock)
        _make_empty_environment(step, build, folder, needs_pip=bool(order.packages or install))
        _install_packages(step, build, folder, order.packages)
        unpack_step_files(build, folder / PROJECT)
        for number, line in enumerate(install, 1):
            build.report(WorkReport(Work.INSTALL, line, number, len(install)))
            build.emit(f"--> {line}")
            command = list(make_step_command(line, build.image.shell))
            code = run_build_step(BuildStep(command, folder / PROJECT, step.environ, lock), build)
            if code != 0:
                raise EngineError(f"install step {number} failed with exit code {code}: {line}", permanent=True)
        _record_packages(folder, step)


def make_environment_variables(folder: Path, path: str) -> dict[str, str]:
    """Return the variables that put a process into an environment; `path` is its PATH outside."""
    return {"VIRTUAL_ENV": str(folder), "PATH": f"{folder / 'bin'}:{path}"}


def unpack_step_files(order: BuildOrder, target: Path) -> None:
    """Unpack the project's files that the install steps may read. They stay: `pip install -e` points to them."""
    target.mkdir()
    if order.project is not None and order.image.files:
        unpack_project(order.project, target, frozenset(order.image.files))


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
    (folder / PACKAGES).write_bytes(found.stdout)
