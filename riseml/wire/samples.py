"""What jobs use: CPU, memory, GPUs."""

from __future__ import annotations

from typing_extensions import TypedDict

from riseml.wire.state_names import StateName


class SampleView(TypedDict):
    """What one job uses. None: unknown, for example because the job does not run."""

    id: str  # `4.worker.1`
    project: str
    state: StateName
    host: str | None  # None: it has no host yet
    time: str | None  # RFC 3339: when it was measured
    cpu: float | None  # per cent of one core: two busy cores are 200
    mem: float | None  # per cent of `mem_total`
    mem_used: int | None  # bytes
    mem_total: int | None  # bytes that the job may use
    gpu: float | None  # per cent of its GPUs
    gpu_mem: float | None  # per cent of `gpu_mem_total`
    gpu_mem_used: int | None  # bytes
    gpu_mem_total: int | None  # bytes
    net_in: float | None  # bytes per second
    net_out: float | None  # bytes per second
    disk_read: float | None  # bytes per second
    disk_write: float | None  # bytes per second
    lines: int | None  # that it printed since the server started to follow its log; compare two samples for a rate
    cpus: float  # guaranteed cores
    mem_mib: int  # guaranteed memory
    gpus: int  # GPUs that it has or waits for
    image: str  # before `install`


class Samples(TypedDict):
    """What the jobs use."""

    samples: list[SampleView]  # one for each job, in the order of the experiments and their jobs
