"""Environments to build, and what makes them, without a server."""

from __future__ import annotations

import uuid
from pathlib import Path

from riseml.executors.base import BuildRequest, Cancellation
from riseml.executors.build_limits import BuildLimits
from riseml.executors.environments.makers import EnvironmentRequest
from riseml.executors.environments.this_machine import ThisMachineMaker
from riseml.executors.environments.venvs import VirtualEnvironments
from riseml.files.archives.project_files import ProjectFiles
from riseml.model import Image


def make_build_request(
    image: Image, lines: list[str] | None = None, project: ProjectFiles | None = None
) -> BuildRequest:
    """Return a request to make an environment; its output goes to `lines`, which are also those of earlier servers."""
    kept = [] if lines is None else lines
    return BuildRequest(image, project, kept.append, Cancellation(), read_held=lambda: list(kept))


def make_environment_request(folder: Path, image: Image, lines: list[str]) -> EnvironmentRequest:
    """Return the same for one folder, with the announcement `begin`."""
    return EnvironmentRequest(make_build_request(image, lines), folder, (), ("begin",), lambda: False)


def make_environments(root: Path, server: str = "", limits: BuildLimits | None = None) -> VirtualEnvironments:
    """Return the environments below a folder, which this machine makes; without an id, for a new server."""
    server = server or uuid.uuid4().hex
    return VirtualEnvironments(root, server, ThisMachineMaker(server, limits or BuildLimits()), gpus=False)
