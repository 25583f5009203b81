"""The NVIDIA GPUs of this machine, through NVML, the library below nvidia-smi: a reading needs no process."""

from __future__ import annotations

import ctypes
import importlib
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeVar, cast

from riseml.base.records import dataclass
from riseml.executors.capabilities import GpuReading
from riseml.executors.gpus.nvidia_smi import read_serial
from riseml.model import Gpu, Sample

Found = TypeVar("Found")

_TEMPERATURE = 0  # NVML_TEMPERATURE_GPU: the sensor of the chip
_DIVIDED = 1  # NVML_DEVICE_MIG_ENABLE
_MIB = 2**20
_DRIVER = "libnvidia-ml.so.1"  # NVML, in the driver: `pynvml` opens it under this name


class _Utilization(Protocol):
    gpu: int  # percent


class _Memory(Protocol):
    used: int  # bytes
    total: int  # bytes


class _PciInfo(Protocol):
    busId: str | bytes


class Nvml(Protocol):
    """What riseml calls of the module `pynvml` (package nvidia-ml-py), whose names are those of NVML's C API."""

    NVMLError: type[Exception]

    def nvmlInit(self) -> None:
        """Load the driver's library."""

    def nvmlDeviceGetCount(self) -> int:
        """Return the number of GPUs."""

    def nvmlDeviceGetHandleByIndex(self, index: int) -> object:
        """Return the GPU with this index, in the order of nvidia-smi."""

    def nvmlDeviceGetUUID(self, handle: object) -> str | bytes:
        """Return the UUID of a GPU: `GPU-...`."""

    def nvmlSystemGetDriverVersion(self) -> str | bytes:
        """Return the version of the driver."""

    def nvmlDeviceGetName(self, handle: object) -> str | bytes:
        """Return the model of a GPU."""

    def nvmlDeviceGetPciInfo(self, handle: object) -> _PciInfo:
        """Return where a GPU is on the PCI bus."""

    def nvmlDeviceGetSerial(self, handle: object) -> str | bytes:
        """Return the serial number of the board of a GPU."""

    def nvmlDeviceGetTemperature(self, handle: object, sensor: int) -> int:
        """Return the degrees Celsius of a GPU."""

    def nvmlDeviceGetPowerUsage(self, handle: object) -> int:
        """Return the milliwatts that a GPU takes."""

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: object) -> int:
        """Return the milliwatts that a GPU may take."""

    def nvmlDeviceGetMigMode(self, handle: object) -> tuple[int, int]:
        """Return whether a GPU is divided now, and whether it is after a reset."""

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: object) -> int:
        """Return how many parts a divided GPU may have."""

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: object, index: int) -> object:
        """Return a part of a divided GPU."""

    def nvmlDeviceGetUtilizationRates(self, handle: object) -> _Utilization:
        """Return how busy a GPU is."""

    def nvmlDeviceGetMemoryInfo(self, handle: object) -> _Memory:
        """Return the memory of a GPU."""


@dataclass(frozen=True, slots=True)
class GpuUse:
    """The current load of some GPUs."""

    percent: float  # mean utilization
    mem_used: int  # bytes, the sum
    mem_total: int  # bytes, the sum


class GpuReader:
    """Lists and reads the GPUs of this machine; safe for several threads. Without a driver there are none.

    Args:
        nvml: NVML; None: the module `pynvml`, imported where a driver is.

    Example:
        >>> GpuReader().read_use(["0", "1"])
        GpuUse(percent=87.5, mem_used=12884901888, mem_total=34359738368)
    """

    def __init__(self, nvml: Nvml | None = None) -> None:
        self._nvml = nvml
        self._lock = threading.Lock()
        self._handles: dict[str, object] = {}  # by index and by UUID; empty: not loaded yet, or no GPU

    def read_all(self) -> tuple[GpuReading, ...]:
        """Return every GPU with its current load, in the order of nvidia-smi; empty without a driver."""
        handles = self._load_handles()
        if self._nvml is None:
            return ()
        try:
            whole = [(name, handle) for name, handle in handles.items() if name.isdecimal()]
            return tuple(reading for name, handle in whole for reading in _read_gpu(self._nvml, name, handle))
        except self._nvml.NVMLError:
            with self._lock:
                self._handles = {}
            return ()

    def read_use(self, ids: Iterable[str]) -> GpuUse | None:
        """Return the current load of these GPUs; None when one of them is unknown, or does not report it.

        Args:
            ids: indices or UUIDs, as pool.yml has them.
        """
        names = tuple(ids)
        handles = self._load_handles() if names else {}
        if self._nvml is None or not names or not handles.keys() >= set(names):
            return None
        try:
            rates = [self._nvml.nvmlDeviceGetUtilizationRates(handles[name]).gpu for name in names]
            memory = [self._nvml.nvmlDeviceGetMemoryInfo(handles[name]) for name in names]
        except self._nvml.NVMLError:
            with self._lock:
                self._handles = {}  # the driver may have been loaded again
            return None
        return GpuUse(sum(rates) / len(rates), sum(info.used for info in memory), sum(info.total for info in memory))

    def _load_handles(self) -> dict[str, object]:
        with self._lock:
            if not self._handles:
                if self._nvml is None and not _has_driver():
                    return {}
                if self._nvml is None:
                    self._nvml = cast(Nvml, importlib.import_module("pynvml"))
                try:
                    self._handles = _find_handles(self._nvml)
                except self._nvml.NVMLError:
                    return {}
            return self._handles


def _has_driver() -> bool:
    """Return True when the driver's library can be opened: without it, the 3 MiB of `pynvml` find no GPU."""
    try:
        ctypes.CDLL(_DRIVER)
    except OSError:
        return False
    return True


def with_gpu_use(sample: Sample, use: GpuUse | None) -> Sample:
    """Return a sample with the load of its job's GPUs; `use` is None when it is not known."""
    if use is None:
        return sample
    return replace(sample, gpu=use.percent, gpu_mem_used=use.mem_used, gpu_mem_total=use.mem_total)


def _read_gpu(nvml: Nvml, name: str, handle: object) -> Iterator[GpuReading]:
    """Yield a GPU, or its parts if it is divided; NVML measures only the memory of parts."""
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    gpu = Gpu(
        id=name,
        uuid=_decode(nvml.nvmlDeviceGetUUID(handle)),
        name=_decode(nvml.nvmlDeviceGetName(handle)),
        mem=memory.total // _MIB,
        driver=_decode(nvml.nvmlSystemGetDriverVersion()),
        bus=_decode(nvml.nvmlDeviceGetPciInfo(handle).busId),
        serial=read_serial(_decode(_ask_nvml(nvml, lambda: nvml.nvmlDeviceGetSerial(handle)) or "")),
    )
    parts = list(_find_parts(nvml, handle))
    for part in parts:
        uuid = _decode(nvml.nvmlDeviceGetUUID(part))
        own = nvml.nvmlDeviceGetMemoryInfo(part)
        title = f"{gpu.name} MIG {round(own.total / 2**30)}gb"
        yield GpuReading(replace(gpu, id=uuid, uuid=uuid, name=title, mem=own.total // _MIB), mem_used=own.used)
    if not parts:
        yield GpuReading(
            gpu,
            percent=_ask_nvml(nvml, lambda: float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)),
            mem_used=memory.used,
            temperature=_ask_nvml(nvml, lambda: float(nvml.nvmlDeviceGetTemperature(handle, _TEMPERATURE))),
            power=_ask_nvml(nvml, lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000),
            power_limit=_ask_nvml(nvml, lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000),
        )


def _find_parts(nvml: Nvml, handle: object) -> Iterator[object]:
    """Yield the parts (MIG devices) of a GPU that is divided."""
    mode = _ask_nvml(nvml, lambda: nvml.nvmlDeviceGetMigMode(handle))
    if mode is None or mode[0] != _DIVIDED:
        return
    for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        part = _ask_nvml(nvml, partial(nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, index))
        if part is not None:
            yield part


def _ask_nvml(nvml: Nvml, read: Callable[[], Found]) -> Found | None:
    """Return the answer of NVML; None when this GPU does not report it."""
    try:
        return read()
    except nvml.NVMLError:
        return None


def _decode(text: str | bytes) -> str:
    """Return a text of NVML; older packages give bytes."""
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else text


def _find_handles(nvml: Nvml) -> dict[str, object]:
    nvml.nvmlInit()
    handles: dict[str, object] = {}
    for index in range(nvml.nvmlDeviceGetCount()):
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        handles |= {str(index): handle, _decode(nvml.nvmlDeviceGetUUID(handle)): handle}
        handles |= {_decode(nvml.nvmlDeviceGetUUID(part)): part for part in _find_parts(nvml, handle)}
    return handles
