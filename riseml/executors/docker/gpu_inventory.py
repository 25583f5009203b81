"""The GPUs of one host of the pool: all of them, those that jobs may use, and their load.

They are read when the server first observes the host, and again at each request of a user: through NVML on this
machine, through a container of the engine on other hosts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from riseml.base.errors import EngineError, RisemlError
from riseml.executors.capabilities import Finding, GpuReading, Outcome
from riseml.executors.docker.gpu_probe import offers_gpus, probe_gpus
from riseml.executors.docker.helpers import Helpers
from riseml.executors.gpus.nvml import GpuReader
from riseml.model import Gpu
from riseml.spec.pool.types import HostSpec

_TOPIC = "gpus"
_KEPT = 4.0  # seconds for which a reading is reused: each reading may start a container


class GpuInventory:
    """The GPUs of one host; an implementation of `GpuReporter`. Safe from several threads.

    Args:
        host: the host in pool.yml; its `gpus` are those that jobs may use.
        helpers: the helpers of the host; one of them reads its GPUs.
        reader: NVML, for a host that is this machine; None: another machine.
    """

    def __init__(self, host: HostSpec, helpers: Helpers, reader: GpuReader | None) -> None:
        self._host = host
        self._helpers = helpers
        self._reader = reader
        self._lock = threading.Lock()
        self._readings: tuple[GpuReading, ...] | None = None  # None: never read
        self._read_at = 0.0  # monotonic seconds
        self._problem: RisemlError | None = None  # why the last reading failed

    def find_devices(self, info: dict[str, Any]) -> tuple[Gpu, ...]:
        """Return the GPUs that jobs may use, by the ids that they get; the first call reads them.

        Args:
            info: the engine's answer of `GET /info`.

        A reading that fails is repeated only when a user asks: otherwise it would delay every observation of the host.

        Raises:
            Unreachable: the engine does not answer.
        """
        with self._lock:
            if self._readings is None and self._host.gpus != ():
                self._read_gpus_once(info)
            return tuple(reading.gpu for reading in self._select(self._readings or ()))

    def choose_ids(self, devices: tuple[Gpu, ...]) -> tuple[str, ...]:
        """Return the ids of the GPUs that jobs may use: those of pool.yml, else all that were found."""
        return tuple(gpu.id for gpu in devices) if self._host.gpus is None else self._host.gpus

    def read_gpus(self) -> tuple[GpuReading, ...]:
        """Return the GPUs that jobs may use, with their current load.

        Raises:
            Unreachable: the engine does not answer.
            EngineError: they cannot be read; with the reason.
        """
        with self._lock:
            if self._readings is None or time.monotonic() - self._read_at > _KEPT:
                self._read_gpus_once(None)
            if self._problem is not None:
                raise self._problem
            return self._select(self._readings or ())

    def check_gpus(self) -> tuple[Finding, ...]:
        """Return the findings of `pool check` about the GPUs; none for a host that has no GPU and names none."""
        try:
            readings = self.read_gpus()
        except EngineError as error:
            hint = f" ({error.hint})" if error.hint else ""
            return (Finding(_TOPIC, Outcome.FAILED, f"{error.message}{hint}"),)
        identities = {reading.gpu.id for reading in readings}
        missing = [name for name in self._host.gpus or () if name not in identities] if readings else []
        if missing:
            return (Finding(_TOPIC, Outcome.FAILED, f"pool.yml names GPU {', '.join(missing)}, which is not there"),)
        return (Finding(_TOPIC, Outcome.OK, describe_gpus([reading.gpu for reading in readings])),) if readings else ()

    def forget(self) -> None:
        """Read the GPUs again at the next observation."""
        with self._lock:
            self._readings = None

    def _read_gpus_once(self, info: dict[str, Any] | None) -> None:
        """Read the GPUs, or keep the reason why they cannot be read. Earlier knowledge stays.

        Args:
            info: the engine's answer of `GET /info`; then nothing is pulled. None: a user asks, and waits for a pull.
        """
        self._problem = None
        try:
            readings = () if self._reader is None else self._reader.read_all()
            if not readings and (info is None or offers_gpus(info)):
                with self._helpers.engine.api(patient=True) as api:
                    engine_info = api.info() if info is None else info
                    readings = probe_gpus(api, self._helpers, engine_info, pulls=info is None)
            self._readings = readings
        except EngineError as error:
            self._problem = error
            self._readings = self._readings or ()
        self._read_at = time.monotonic()

    def _select(self, readings: tuple[GpuReading, ...]) -> tuple[GpuReading, ...]:
        """Return the GPUs that pool.yml names, with the ids that it uses; all of them if it names none."""
        if self._host.gpus is None:
            return readings
        return tuple(self._find_named(readings))

    def _find_named(self, readings: tuple[GpuReading, ...]) -> Iterator[GpuReading]:
        for name in self._host.gpus or ():
            for reading in readings:
                if name in (reading.gpu.id, reading.gpu.uuid):
                    yield replace(reading, gpu=replace(reading.gpu, id=name))


def describe_gpus(gpus: list[Gpu]) -> str:
    """Return `2 x NVIDIA A100-SXM4-40GB (40.0 GiB), driver 535.104.05`."""
    kinds: dict[tuple[str, int, str], int] = {}
    for gpu in gpus:
        kinds[gpu.name, gpu.mem, gpu.driver] = kinds.get((gpu.name, gpu.mem, gpu.driver), 0) + 1
    return "; ".join(
        f"{count} x {name} ({mem / 1024:.1f} GiB), driver {driver}" for (name, mem, driver), count in kinds.items()
    )
