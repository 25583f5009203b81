"""The riseml.yml that a command uses: its text, its problems, and what it describes."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from riseml.cli.output.text import count_noun
from riseml.errors import RisemlError
from riseml.project.folder import Project, find_project, read_config

if TYPE_CHECKING:
    from riseml.cli.context import CommandContext
    from riseml.spec.config.loader import Overrides
    from riseml.spec.config.types import Spec
    from riseml.spec.yaml.problems import Problem


@dataclass(frozen=True, slots=True)
class ConfigSource:
    """A riseml.yml as it was read."""

    project: Project
    name: str  # as messages call the file: the shorter of its relative and its absolute path
    text: str

    def place(self, folder: Path) -> str:
        """Return the project's folder as messages call it from `folder`."""
        return min(os.path.relpath(self.project.folder, folder), str(self.project.folder), key=len)


def read_config_source(context: CommandContext, file: Path | None) -> ConfigSource:
    """Return the riseml.yml of the working directory, or `file`.

    Raises:
        NotFound: there is none.
        UsageError: it cannot be read.
    """
    project = find_project(context.folder, file)
    relative, absolute = os.path.relpath(project.file, context.folder), str(project.file)
    return ConfigSource(project, min(relative, absolute, key=len), read_config(project))


def check_config_source(
    source: ConfigSource, overrides: Overrides | None = None
) -> tuple[Spec | None, Sequence[Problem]]:
    """Return the spec and all problems; no spec when riseml.yml has errors."""
    from riseml.spec.config.loader import Overrides, check_config

    checked = check_config(source.text, source.name, overrides or Overrides())
    return checked.spec, checked.problems


def describe_spec(spec: Spec) -> str:
    """Return `project ai-toaster, tensorflow, 4 jobs (master, worker.1, worker.2, ps.1), 8 experiments`."""
    parts = [f"project {spec.project}"]
    if spec.train.framework:
        parts.append(spec.train.framework)
    jobs = _list_job_names(spec)
    if jobs:
        parts.append(f"{count_noun(len(jobs), 'job')} ({_join_names(jobs)})")
    count = math.prod(len(parameter.values) for parameter in spec.train.parameters)
    if count > 1:
        parts.append(f"{count} experiments, {spec.train.concurrency} at the same time")
    return ", ".join(parts)


def _list_job_names(spec: Spec) -> list[str]:
    from riseml.frameworks.registry import choose_framework

    try:
        return [role.name for role in choose_framework(spec.train).roles(spec.train)]
    except RisemlError:
        return []  # `validate` warns about a framework that riseml cannot run


def _join_names(names: list[str]) -> str:
    return ", ".join(names if len(names) <= 6 else [*names[:4], "...", names[-1]])
