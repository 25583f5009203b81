"""Measures one container when the caller asks, each time with one request."""

from __future__ import annotations

from dataclasses import field

from riseml.base.records import dataclass
from riseml.executors.docker.stats import StatsDifference, find_gpus, read_stats
from riseml.executors.gpus.nvml import GpuReader, with_gpu_use
from riseml.executors.transports.engine_client import Engine
from riseml.model import Sample


@dataclass(slots=True)
class ContainerMeter:
    """The meter of one container."""

    engine: Engine
    name: str  # name of the container
    gpu_reader: GpuReader
    _difference: StatsDifference = field(default_factory=StatsDifference)
    _gpus: tuple[str, ...] | None = None  # None: not known yet

    def read_use(self) -> Sample | None:
        with self.engine.api() as api:
            row = read_stats(api, self.name)
            if self._gpus is None:
                self._gpus = find_gpus(api, self.name) if self.engine.is_local else ()
        sample = self._difference.add_reading(row)
        return None if sample is None else with_gpu_use(sample, self.gpu_reader.read_use(self._gpus))
