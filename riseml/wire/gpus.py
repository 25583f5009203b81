"""The GPUs of the hosts: models, load, and the jobs that have them."""

from __future__ import annotations

from typing_extensions import TypedDict


class GpuView(TypedDict):
    """One GPU that jobs may use. Null: its driver does not report the value."""

    host: str
    id: str  # as pool.yml and jobs name it: an index, or a UUID
    uuid: str
    name: str  # name of the model
    driver: str  # version of the driver
    bus: str  # address on the PCI bus
    serial: str  # serial number of the board; empty: the driver does not report it
    mem_total: int | None  # bytes
    mem_used: int | None  # bytes
    percent: float | None  # share of the time in which it worked
    temperature: float | None  # degrees Celsius
    power: float | None  # watts
    power_limit: float | None  # watts
    jobs: list[str]  # IDs of the jobs that have it


class GpuTrouble(TypedDict):
    """A host whose GPUs cannot be read."""

    host: str
    message: str  # why


class GpuList(TypedDict):
    """The GPUs of all hosts, or those of some jobs."""

    gpus: list[GpuView]  # by host, in the order of nvidia-smi
    troubles: list[GpuTrouble]
