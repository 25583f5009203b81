"""The resources of one role, and those that it takes from `train.resources`."""

from __future__ import annotations

from riseml.spec.config.types import Labels, Resources
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile


def read_resources(file: SourceFile, path: KeyPath, default: Resources) -> Resources:
    """Return the resources at a path; missing ones come from `default`."""
    cpus = file.value_at((*path, "cpus"))
    gpus = file.value_at((*path, "gpus"))
    mem = file.memory_at((*path, "mem"))
    return Resources(
        default.cpus if cpus is None else float(cpus),
        default.mem if mem is None else mem,
        default.gpus if gpus is None else gpus,
        _read_labels(file, (*path, "labels"), default.labels),
        default.gpu if (gpu := file.value_at((*path, "gpu"))) is None else str(gpu),
        default.gpu_mem if (gpu_mem := file.memory_at((*path, "gpu_mem"))) is None else gpu_mem,
    )


def _read_labels(file: SourceFile, path: KeyPath, default: Labels) -> Labels:
    """Return the labels at a path, or those of `default` when it has none. A role's labels replace the default ones."""
    written = file.value_at(path)
    if not isinstance(written, dict):
        return default
    values = ((name, file.value_at((*path, name))) for name in sorted(written))
    return tuple((name, str(value)) for name, value in values if value is not None)
