"""The riseml.yml of a project's folder: its text and its problems."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from riseml.base.records import dataclass
from riseml.files.project.folder import Project, find_project, read_config

if TYPE_CHECKING:
    from riseml.spec.config.loader import Overrides
    from riseml.spec.config.types import Spec
    from riseml.spec.yaml.problems import Problem


@dataclass(frozen=True, slots=True)
class ConfigSource:
    """A riseml.yml as it was read."""

    project: Project
    name: str  # name of the file in messages: the shorter of its relative and its absolute path
    text: str

    def place(self, folder: Path) -> str:
        """Return the project's folder for messages: relative to `folder`, or absolute if that is shorter."""
        return min(os.path.relpath(self.project.folder, folder), str(self.project.folder), key=len)


def read_config_source(folder: Path, file: Path | None) -> ConfigSource:
    """Return the riseml.yml of the working directory `folder`, or `file`.

    Raises:
        NotFound: there is none.
        UsageError: it cannot be read.
    """
    project = find_project(folder, file)
    relative = os.path.relpath(project.file, folder)
    absolute = str(project.file)
    return ConfigSource(project, min(relative, absolute, key=len), read_config(project))


def check_config_source(
    source: ConfigSource, overrides: Overrides | None = None
) -> tuple[Spec | None, Sequence[Problem]]:
    """Return the spec and all problems; no spec when riseml.yml has errors."""
    from riseml.spec.config.loader import Overrides, check_config

    checked = check_config(source.text, source.name, overrides or Overrides())
    return checked.spec, checked.problems
