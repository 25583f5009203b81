"""What makers of virtual environments share: this machine, or a node with the Python that will use them.

One build has a folder beside the environment that it makes, `<digest>.build`:

    order.json              what is made: written last, so that without it there is no build
    project/                the project's files that the install steps may read
    environment_builder.py  the program that makes it
    held.txt                what the install steps keep: the first of them writes it
    claim, log, end.json    see `environment_builder`

A build outlives the server that began it. The next server finds the folder: it follows the build while an experiment
waits for the environment, and ends it otherwise.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn, Protocol

from riseml.base.errors import DiskFull, EngineError
from riseml.base.records import dataclass
from riseml.executors.base import BuildRequest
from riseml.executors.environments import environment_builder
from riseml.executors.environments.project_files import unpack_project
from riseml.executors.supervision.job_files import read_record
from riseml.executors.this_machine.disk_use import FULL_DISK_HINT
from riseml.planning.image import make_step_commands

READY = ".ready"  # this file exists in a complete environment
PROJECT = "project"
PACKAGES = "packages.txt"  # the packages after the steps, as `pip freeze` writes them
BUILD_SUFFIX = ".build"  # ends the name of the folder of a build
ASIDE_SUFFIX = ".ended"  # ends the name of the folder of a build that is being ended
ORDER = "order.json"
HELD = "held.txt"  # the constraints of the install steps (`job_programs.held_packages`)
BUILDER = "environment_builder.py"
SEE_LOG = "the lines above say why: `riseml logs` shows them"


@dataclass(frozen=True, slots=True)
class EnvironmentRequest:
    """One environment to make."""

    build: BuildRequest
    folder: Path  # where the environment is made and stays
    packages: tuple[str, ...]  # packages that replace its image
    announcements: tuple[str, ...]  # lines that the log of the build begins with
    is_awaited: Callable[[], bool]  # whether another experiment waits for the same environment

    @property
    def place(self) -> Path:
        """The folder of the build."""
        return self.folder.with_suffix(BUILD_SUFFIX)


class EnvironmentMaker(Protocol):
    """Makes environments for one kind of Python."""

    def identify_python(self) -> list[object]:
        """Return what an environment depends on, beside its recipe."""

    def describe_python(self) -> str:
        """Return the Python of the environments, for people."""

    def has_python(self, folder: Path) -> bool:
        """Return whether an environment has its Python."""

    def make_environment(self, request: EnvironmentRequest) -> None:
        """Make an environment, or follow the build that makes it since an earlier server. The folder of the build
        stays; the caller ends the build and removes it.

        Raises:
            EngineError: a step failed, or the request was cancelled.
        """

    def end_build(self, place: Path) -> None:
        """End a build that this server or an earlier one of its home began, and remove its folder; does nothing when
        there is none.

        Raises:
            EngineError: it goes on.
        """


def make_environment_variables(folder: Path, path: str) -> dict[str, str]:
    """Return the variables that put a process into an environment; `path` is its PATH outside."""
    return {"VIRTUAL_ENV": str(folder), "PATH": f"{folder / 'bin'}:{path}"}


def write_build(request: EnvironmentRequest, settings: Mapping[str, Any]) -> None:
    """Write the folder of a build.

    Args:
        request: the environment.
        settings: what the maker adds to `order.json`: `server`, the id of the server, and what the builder needs.

    Raises:
        OSError: it cannot be written.
    """
    place = request.place
    image = request.build.image
    place.mkdir(mode=0o700)
    _unpack_step_files(request.build, place / PROJECT)
    shutil.copyfile(str(environment_builder.__file__), place / BUILDER)
    content = {
        "target": str(request.folder),
        "packages": list(request.packages),
        "steps": list(zip(image.install, make_step_commands(image, str(place / HELD)), strict=True)),
        **settings,
    }
    fresh = place / "order.new"
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600), "w") as file:
        json.dump(content, file)
    fresh.rename(place / ORDER)


def read_order(place: Path) -> dict[str, Any] | None:
    """Return the order of a build; None when there is no build."""
    return _read_build_file(place / ORDER)


def read_build_end(place: Path) -> dict[str, Any] | None:
    """Return what the builder wrote last; None when it has not ended."""
    return _read_build_file(place / "end.json")


def raise_for_end(end: Mapping[str, Any], package_hint: str = SEE_LOG) -> None:
    """Raise the failure of a build; return when the environment is complete.

    Args:
        end: what the builder wrote last.
        package_hint: what the user can do when the packages of the image cannot be installed.
    """
    if end.get("error") and end.get("full"):
        raise DiskFull(str(end["error"]), FULL_DISK_HINT, permanent=True)
    if end.get("error"):
        hints = {environment_builder.PACKAGES: package_hint, environment_builder.STEPS: None}
        raise EngineError(str(end["error"]), hints.get(str(end.get("stage")), SEE_LOG), permanent=True)


def raise_cancelled() -> NoReturn:
    """Raise the end of an order that the loop has cancelled."""
    raise EngineError("the build was cancelled", permanent=True)


def _unpack_step_files(request: BuildRequest, target: Path) -> None:
    """Unpack the project's files that the install steps may read. They stay: `pip install -e` points to them."""
    target.mkdir()
    if request.project is not None and request.image.files:
        unpack_project(request.project, target, frozenset(request.image.files))


def _read_build_file(path: Path) -> dict[str, Any] | None:
    try:
        return read_record(path)
    except (OSError, ValueError):
        return None
