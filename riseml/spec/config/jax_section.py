"""The `jax` section: the version, the containers of a process group, and the processes in each of them."""

from __future__ import annotations

from riseml.spec.config.process_group import read_process_group
from riseml.spec.config.types import JAX, Resources
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile

_PATH: KeyPath = ("train", "jax")


def read_jax(file: SourceFile, base: Resources) -> JAX | None:
    """Return the `jax` section; None when the file has none.

    Args:
        file: the file; problems go there.
        base: `train.resources`, the default of every role.
    """
    if file.value_at(_PATH) is None:
        return None
    version = file.value_at((*_PATH, "version"))
    return JAX(version or JAX().version, read_process_group(file, (*_PATH, "distributed"), base))
