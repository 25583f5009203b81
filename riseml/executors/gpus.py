"""The NVIDIA GPUs of this machine, through NVML, the library below nvidia-smi: a reading needs no process."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol, cast

from riseml.model import Sample


class _Utilization(Protocol):
    gpu: int  # percent


class _Memory(Protocol):
    used: int  # bytes
    total: int  # bytes


class Nvml(Protocol):
    """What riseml calls of the module `pynvml` (package nvidia-ml-py), whose names are those of NVML's C API."""

    NVMLError: type[Exception]

    def nvmlInit(self) -> None:
        """Load the driver's library."""

    def nvmlDeviceGetCount(self) -> int:
        """Return the number of GPUs."""

    def nvmlDeviceGetHandleByIndex(self, index: int) -> object:
        """Return the GPU with this index, in the order of nvidia-smi."""

    def nvmlDeviceGetUUID(self, handle: object) -> str:
        """Return the UUID of a GPU: `GPU-...`."""

    def nvmlDeviceGetUtilizationRates(self, handle: object) -> _Utilization:
        """Return how busy a GPU is."""

    def nvmlDeviceGetMemoryInfo(self, handle: object) -> _Memory:
        """Return the memory of a GPU."""


@dataclass(frozen=True, slots=True)
class GpuUse:
    """What some GPUs do now."""

    percent: float  # mean utilization
    mem_used: int  # bytes, the sum
    mem_total: int  # bytes, the sum


class GpuReader:
    """Lists and reads the GPUs of this machine; safe for several threads. Without a driver there are none.

    Args:
        nvml: NVML; None: the module `pynvml`, imported at the first call.

    Example:
        >>> GpuReader().read_use(["0", "1"])
        GpuUse(percent=87.5, mem_used=12884901888, mem_total=34359738368)
    """

    def __init__(self, nvml: Nvml | None = None) -> None:
        self._nvml = nvml
        self._lock = threading.Lock()
        self._handles: dict[str, object] = {}  # by index and by UUID; empty: not loaded yet, or no GPU

    def list_ids(self) -> tuple[str, ...]:
        """Return the index of each GPU: `("0", "1")`."""
        return tuple(name for name in self._load_handles() if name.isdecimal())

    def read_use(self, ids: Iterable[str]) -> GpuUse | None:
        """Return what these GPUs do now; None: one of them is unknown, or does not tell.

        Args:
            ids: indices or UUIDs, as pool.yml has them.
        """
        wanted = tuple(ids)
        handles = self._load_handles() if wanted else {}
        if self._nvml is None or not wanted or not handles.keys() >= set(wanted):
            return None
        try:
            rates = [self._nvml.nvmlDeviceGetUtilizationRates(handles[name]).gpu for name in wanted]
            memory = [self._nvml.nvmlDeviceGetMemoryInfo(handles[name]) for name in wanted]
        except self._nvml.NVMLError:
            with self._lock:
                self._handles = {}  # the driver may have been loaded again
            return None
        return GpuUse(sum(rates) / len(rates), sum(one.used for one in memory), sum(one.total for one in memory))

    def _load_handles(self) -> dict[str, object]:
        with self._lock:
            if not self._handles:
                if self._nvml is None:
                    self._nvml = cast(Nvml, importlib.import_module("pynvml"))
                try:
                    self._handles = _find_handles(self._nvml)
                except self._nvml.NVMLError:
                    return {}
            return self._handles


def with_gpu_use(sample: Sample, use: GpuUse | None) -> Sample:
    """Return a sample with what its job's GPUs do; None: nothing is known of them."""
    if use is None:
        return sample
    return replace(sample, gpu=use.percent, gpu_mem_used=use.mem_used, gpu_mem_total=use.mem_total)


def _find_handles(nvml: Nvml) -> dict[str, object]:
    nvml.nvmlInit()
    found: dict[str, object] = {}
    for index in range(nvml.nvmlDeviceGetCount()):
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        found |= {str(index): handle, nvml.nvmlDeviceGetUUID(handle): handle}
    return found
