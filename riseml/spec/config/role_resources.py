"""The resources of one role, and those that it takes from `train.resources`."""

from __future__ import annotations

from riseml.spec.config.types import Labels, Resources
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile, read_section


def read_resources(file: SourceFile, path: KeyPath, default: Resources) -> Resources:
    """Return the resources at a path; missing ones come from `default`."""
    labels = _read_labels(file, (*path, "labels"), default.labels)
    return read_section(file, path, Resources, default, labels=labels)


def _read_labels(file: SourceFile, path: KeyPath, default: Labels) -> Labels:
    """Return the labels at a path, or those of `default` when it has none. A role's labels replace the default ones."""
    if file.value_at(path) is None:
        return default
    return tuple(sorted((str(place[-1]), str(value)) for place, value in file.items_at(path).items()))
