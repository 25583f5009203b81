"""Which GPUs a job accepts: `resources.gpu` names a model, `resources.gpu_mem` the least memory. Pure.

A host qualifies when every GPU that jobs may use qualifies, so that placement only counts devices.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from riseml.model import HostObservation
from riseml.spec.config.types import Resources

GpuModel = tuple[str, int]
"""Name and MiB of a model of GPU."""

_WORD = re.compile(r"[a-z0-9]+")
_PART = "mig"  # a word in the name of a part of a divided GPU


def list_models(host: HostObservation) -> tuple[GpuModel, ...]:
    """Return the models of a host's GPUs; empty when it has none, or when one of them is not known."""
    devices = host.devices
    if not devices or not all(gpu in devices for gpu in host.capacity.gpus):
        return ()
    return tuple(sorted({(devices[gpu].name, devices[gpu].mem) for gpu in host.capacity.gpus}))


def wants_models(need: Resources) -> bool:
    """Return True when a job does not accept any GPU."""
    return need.gpus > 0 and (bool(need.gpu) or need.gpu_mem is not None)


def has_wanted_gpus(models: tuple[GpuModel, ...], need: Resources) -> bool:
    """Return True when a job accepts every GPU of a host with these models."""
    return not wants_models(need) or (bool(models) and all(_accepts(need, *model) for model in models))


def matches_model(name: str, pattern: str) -> bool:
    """Return True when a GPU of this name is of the model that a user names.

    Whole words are compared, so that `a10` does not match A100; spaces and dashes do not count. A part of a divided GPU
    matches only when the user names the part: `a100 mig 3g.20gb`.

    Example:
        >>> matches_model("NVIDIA GeForce RTX 3090", "rtx3090")
        True
    """
    words = _WORD.findall(name.lower())
    parts = _WORD.findall(pattern.lower())
    if _PART in words and _PART not in parts:
        return False
    text = "".join(parts)
    ends = range(1, len(words) + 1)
    return bool(text) and any("".join(words[begin:end]) == text for end in ends for begin in range(end))


def describe_wanted(need: Resources) -> str:
    """Return which GPUs a job accepts: `a100 with 40960 MiB or more`."""
    model = need.gpu or "any model"
    return model if need.gpu_mem is None else f"{model} with {need.gpu_mem} MiB or more"


def describe_models(models: Iterable[GpuModel], gpus: int) -> str:
    """Return which GPUs a host has: `NVIDIA A100-SXM4-40GB (40960 MiB)`."""
    descriptions = [f"{name} ({mem} MiB)" for name, mem in models]
    if not descriptions:
        return "GPUs of unknown model" if gpus else "no GPU"
    return " and ".join(descriptions)


def _accepts(need: Resources, name: str, mem: int) -> bool:
    return (not need.gpu or matches_model(name, need.gpu)) and (need.gpu_mem is None or mem >= need.gpu_mem)
