"""NVML of a machine with two GPUs, or without a driver."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

MIB = 2**20
USES = {"GPU-a": (30, 1024), "GPU-b": (50, 2048)}  # percent, MiB of 8192


class NoDriver(Exception):
    """NVML's error."""


class Nvml:
    """NVML of a machine with two GPUs, or without a driver."""

    NVMLError: type[Exception] = NoDriver

    def __init__(self, *, works: bool = True, divided: bool = False) -> None:
        self.works = works
        self.divided = divided  # GPU-b has two parts
        self.starts = 0

    def nvmlInit(self) -> None:
        self.starts += 1
        self._demand_driver()

    def nvmlDeviceGetCount(self) -> int:
        return len(USES)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> object:
        return list(USES)[index]

    def nvmlDeviceGetUUID(self, handle: object) -> str:
        return str(handle)

    def nvmlSystemGetDriverVersion(self) -> str:
        return "535.129.03"

    def nvmlDeviceGetName(self, handle: object) -> bytes:
        return b"Tesla V100"  # packages before 11.5 give bytes

    def nvmlDeviceGetPciInfo(self, handle: object) -> Any:
        return SimpleNamespace(busId="00000000:3B:00.0")

    def nvmlDeviceGetSerial(self, handle: object) -> bytes:
        if handle == "GPU-b":
            raise NoDriver  # as a card without a number
        return b"0323517084421"

    def nvmlDeviceGetTemperature(self, handle: object, sensor: int) -> int:
        return 40 + sensor

    def nvmlDeviceGetPowerUsage(self, handle: object) -> int:
        return 61_500

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: object) -> int:
        raise NoDriver  # as a GPU that does not support it

    def nvmlDeviceGetMigMode(self, handle: object) -> tuple[int, int]:
        if not self.divided:
            raise NoDriver
        return (1, 1) if handle == "GPU-b" else (0, 0)

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: object) -> int:
        return 3

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: object, index: int) -> object:
        if index > 1:
            raise NoDriver
        return f"MIG-{index}"

    def nvmlDeviceGetUtilizationRates(self, handle: object) -> Any:
        self._demand_driver()
        return SimpleNamespace(gpu=USES[str(handle)][0])

    def nvmlDeviceGetMemoryInfo(self, handle: object) -> Any:
        used = USES[str(handle)][1] if handle in USES else 512
        return SimpleNamespace(used=used * MIB, total=8192 * MIB if handle in USES else 4096 * MIB)

    def _demand_driver(self) -> None:
        if not self.works:
            raise NoDriver
