"""The engine's statistics as samples, and the meter of one container."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Any

import docker
from docker.errors import NotFound

from riseml.base.records import dataclass
from riseml.executors.base import NotThere
from riseml.executors.docker.containers import container_name
from riseml.executors.gpus.nvml import GpuReader, with_gpu_use
from riseml.executors.logs.timestamps import to_datetime, to_nanoseconds
from riseml.executors.transports.engine_client import Engine
from riseml.model import JobKey, Sample, Traffic

_BILLION = 10**9
_Counters = tuple[int | None, ...]
"""Bytes received, sent, read and written so far."""


class StatsDifference:
    """Turns the readings of one container, one after the other, into samples.

    The CPU percentage is the CPU time of the container over the wall time between two readings, in percent of one core.
    Memory in use leaves out the page cache that the kernel could give back, as `docker stats` does (`inactive_file`, or
    `total_inactive_file` with cgroup v1).
    """

    def __init__(self) -> None:
        # the last reading: its time, the CPU time until then (both in nanoseconds), the bytes until then
        self._before: tuple[int, int, _Counters] | None = None

    def add_reading(self, row: dict[str, Any]) -> Sample | None:
        """Return the sample between the last reading and this one; None: this is the first, or the container has
        ended, or has not started.
        """
        memory = row.get("memory_stats") or {}
        if not memory.get("usage"):
            return None
        now = to_nanoseconds(row["read"])
        used = int(row["cpu_stats"]["cpu_usage"]["total_usage"])
        counters = _count_bytes(row)
        before, self._before = self._before, (now, used, counters)
        if before is None or now <= before[0]:
            return None
        cpu = (used - before[1]) / (now - before[0]) * 100
        traffic = _measure_traffic(before[2], counters, (now - before[0]) / _BILLION)
        return Sample(to_datetime(now), max(0.0, cpu), _memory_in_use(memory), int(memory["limit"]), traffic=traffic)


@dataclass(slots=True)
class ContainerMeter:
    """The meter of one container: it measures when the caller asks, each time with one request."""

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


@dataclass(frozen=True, slots=True)
class ContainerMeters:
    """Measures what the containers of one server on one engine use; an implementation of `UseMeasurer`."""

    engine: Engine
    server: str  # id of the server
    gpu_reader: GpuReader

    def open_meter(self, key: JobKey) -> ContainerMeter:
        return ContainerMeter(self.engine, container_name(self.server, key), self.gpu_reader)

    def measure_processor_time(self, key: JobKey) -> float:
        with self.engine.api() as api:
            row = read_stats(api, container_name(self.server, key))
        return float(row["cpu_stats"]["cpu_usage"]["total_usage"]) / _BILLION

    def sample(self, key: JobKey) -> Iterator[Sample]:
        """Yield a sample each second until the container ends; see `Executor.sample`."""
        name = container_name(self.server, key)
        with self.engine.stream() as api:
            gpus = find_gpus(api, name) if self.engine.is_local else ()
            for sample in parse_samples(api.stats(name, decode=True, stream=True)):
                yield with_gpu_use(sample, self.gpu_reader.read_use(gpus))


def parse_samples(rows: Iterable[dict[str, Any]]) -> Iterator[Sample]:
    """Yield a sample for every reading after the first, from the answer of `GET /containers/{id}/stats`."""
    difference = StatsDifference()
    for row in rows:
        sample = difference.add_reading(row)
        if sample is not None:
            yield sample


def read_stats(api: docker.APIClient, name: str) -> dict[str, Any]:
    """Return one reading of a running container. The engine measures once: it does not wait for a second reading.

    Raises:
        NotThere: it does not run.
    """
    try:
        row: dict[str, Any] = api.stats(name, stream=False, one_shot=True)
    except NotFound:
        row = {}
    if not (row.get("memory_stats") or {}).get("usage"):
        raise NotThere(f"the container {name} does not run")
    return row


def find_gpus(api: docker.APIClient, name: str) -> tuple[str, ...]:
    """Return the ids of the GPUs that a container was given; none when the container is gone."""
    try:
        container = api.inspect_container(name)
    except NotFound:
        return ()
    requests = container["HostConfig"].get("DeviceRequests") or []
    return tuple(identity for request in requests for identity in request.get("DeviceIDs") or ())


def _count_bytes(row: dict[str, Any]) -> _Counters:
    """Return the bytes that a container has received, sent, read and written; None where the engine counts none.

    The engine counts no traffic of a container in the network of its host, and no disk without the kernel's block
    statistics.
    """
    nets = (row.get("networks") or {}).values()
    disks = (row.get("blkio_stats") or {}).get("io_service_bytes_recursive")
    moved: list[int | None] = [sum(int(net[key]) for net in nets) if nets else None for key in ("rx_bytes", "tx_bytes")]
    for name in ("read", "write"):  # `Read` with cgroup v1
        counts = [int(entry["value"]) for entry in disks or () if str(entry["op"]).lower() == name]
        moved.append(sum(counts) if disks is not None else None)
    return tuple(moved)


def _measure_traffic(before: _Counters, after: _Counters, seconds: float) -> Traffic:
    pairs = zip(before, after, strict=True)
    rates = [None if old is None or new is None else max(0.0, (new - old) / seconds) for old, new in pairs]
    return Traffic(*rates)


def _memory_in_use(memory: dict[str, Any]) -> int:
    details = memory.get("stats") or {}
    cache = details.get("total_inactive_file", details.get("inactive_file", 0))
    return max(0, int(memory["usage"]) - int(cache))
