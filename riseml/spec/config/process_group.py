"""A process group as the sections of PyTorch and JAX have it: its containers, and the processes in each of them."""

from __future__ import annotations

import re

from riseml.spec.config.role_resources import read_resources
from riseml.spec.config.types import ProcessGroup, Resources
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile


def read_process_group(file: SourceFile, path: KeyPath, base: Resources) -> ProcessGroup | None:
    """Return the process group at a path; None when there is none.

    Args:
        file: the file; problems go there.
        path: where the group is: `train.pytorch.distributed`.
        base: `train.resources`, the default of every role.
    """
    if not file.value_at(path):
        return None
    worker = file.value_at((*path, "worker"))
    count = file.value_at((*path, "worker", "count")) if isinstance(worker, dict) else worker
    return ProcessGroup(
        workers=1 if count is None else int(count),
        processes=file.value_at((*path, "processes")),
        master_resources=read_resources(file, (*path, "master", "resources"), base),
        worker_resources=read_resources(file, (*path, "worker", "resources"), base),
    )


def runs_command(file: SourceFile, command: re.Pattern[str]) -> bool:
    """Return True when a line of `run` has a command that matches."""
    run = file.value_at(("train", "run"))
    text = "\n".join(str(line) for line in run) if isinstance(run, list) else str(run)
    return command.search(text) is not None
