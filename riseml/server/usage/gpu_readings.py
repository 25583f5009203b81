"""The current load of the GPUs of all hosts, and the jobs that have them. All hosts are read in parallel."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from riseml import wire
from riseml.base.errors import RisemlError
from riseml.base.names import HostName
from riseml.base.states import PLACED
from riseml.control.visible_names import name_for
from riseml.executors.base import Executor
from riseml.executors.capabilities import GpuReading
from riseml.executors.pool import HostPool
from riseml.model import Caller, Experiment

_MIB = 2**20
_LASTS = 60.0  # seconds for which scrapes reuse a reading; on some hosts a reading starts a container

Answer = tuple[GpuReading, ...] | RisemlError
"""The GPUs of a host, or why they cannot be read."""

Holders = Mapping[tuple[HostName, str], list[str]]
"""The IDs of the jobs that have a GPU, by its host and its id."""


def read_all_gpus(pool: HostPool, *, equipped: bool = False) -> dict[HostName, Answer]:
    """Return the answer of each host that can report its GPUs; do not wait for silent hosts.

    Args:
        pool: the hosts.
        equipped: leave out hosts that give no GPU to jobs.
    """
    last_seen = pool.list_last_seen()
    hosts = {
        name: executor
        for name, executor in sorted(pool.executors.items())
        if name in last_seen
        and last_seen[name].silent_since is None
        and (last_seen[name].capacity.gpus or not equipped)
    }
    with ThreadPoolExecutor(max(1, len(hosts)), thread_name_prefix="gpus") as workers:
        answers = workers.map(_read_host, hosts.values())
        return dict(zip(hosts, answers, strict=True))


class GpuScrapes:
    """The GPUs for scrapes of Prometheus: read at most once a minute, and only when a scrape asks.

    Args:
        pool: the hosts.
        clock: seconds; never set back.
    """

    def __init__(self, pool: HostPool, clock: Callable[[], float] = time.monotonic) -> None:
        self._pool = pool
        self._clock = clock
        self._lock = threading.Lock()
        self._gpus: list[wire.GpuView] = []
        self._read_at: float | None = None  # None: never

    def read(self) -> list[wire.GpuView]:
        """Return the GPUs of all hosts that have some, at most a minute old, without the jobs that have them."""
        with self._lock:
            if self._read_at is None or self._clock() - self._read_at >= _LASTS:
                answers = read_all_gpus(self._pool, equipped=True)
                self._gpus = show_gpus(answers, {}, "")["gpus"]
                self._read_at = self._clock()
            return self._gpus


def _read_host(executor: Executor) -> Answer:
    gpus = executor.capabilities.gpus
    if gpus is None:
        return ()
    try:
        return gpus.read_gpus()
    except RisemlError as error:
        return error


def find_holders(experiments: tuple[Experiment, ...], caller: Caller) -> dict[tuple[HostName, str], list[str]]:
    """Return which jobs have which GPUs, as a caller knows them."""
    holders: dict[tuple[HostName, str], list[str]] = {}
    for experiment in experiments:
        for job in experiment.jobs:
            for gpu in job.gpus if job.state in PLACED and job.host is not None else ():
                name = name_for(caller, experiment)
                label = "another user's job" if name is None else f"{name}.{job.name}"
                holders.setdefault((HostName(str(job.host)), gpu), []).append(label)
    return holders


def show_gpus(answers: Mapping[HostName, Answer], holders: Holders, of: str) -> wire.GpuList:
    """Return the GPUs in the shape of the HTTP API.

    Args:
        answers: the GPUs of each host, or the reason why they are not known.
        holders: which jobs have which GPUs.
        of: an ID; only the GPUs of the jobs below it are shown. Empty: all GPUs.
    """
    gpus: list[wire.GpuView] = []
    troubles: list[wire.GpuTrouble] = []
    for host, answer in answers.items():
        if isinstance(answer, RisemlError):
            troubles.append({"host": host, "message": answer.message})
            continue
        for reading in answer:
            jobs = holders.get((host, reading.gpu.id), [])
            if not of or any(name == of or name.startswith(f"{of}.") for name in jobs):
                gpus.append(_show_gpu(host, reading, jobs))
    return {"gpus": gpus, "troubles": troubles}


def _show_gpu(host: HostName, reading: GpuReading, jobs: list[str]) -> wire.GpuView:
    return {
        "host": host,
        "id": reading.gpu.id,
        "uuid": reading.gpu.uuid,
        "name": reading.gpu.name,
        "driver": reading.gpu.driver,
        "bus": reading.gpu.bus,
        "serial": reading.gpu.serial,
        "mem_total": reading.gpu.mem * _MIB or None,
        "mem_used": reading.mem_used,
        "percent": reading.percent,
        "temperature": reading.temperature,
        "power": reading.power,
        "power_limit": reading.power_limit,
        "jobs": jobs,
    }
