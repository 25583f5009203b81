"""The GPUs of the hosts as lines. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from riseml.cli.output.style import Style
from riseml.cli.output.tables import Column, build_table
from riseml.cli.output.text import format_gib

if TYPE_CHECKING:
    from riseml import wire

_UNKNOWN = "-"
_GPUS = (
    Column("HOST", shrinks=True),
    Column("GPU", shrinks=True),
    Column("NAME", shrinks=True),
    Column("BUSY", right=True),
    Column("MEM Used/Total", right=True),
    Column("POWER", right=True),
    Column("TEMP", right=True),
    Column("BUS"),
    Column("JOBS", shrinks=True),
)
_MODELS = (
    Column("HOST", shrinks=True),
    Column("GPU", shrinks=True),
    Column("NAME", shrinks=True),
    Column("MEM", right=True),
    Column("DRIVER"),
    Column("SERIAL"),
    Column("UUID", shrinks=True),
)
_NONE = "No GPU is known on any host; `riseml pool check` says why, where there should be one."


def list_gpu_use(gpus: wire.GpuList, style: Style, *, identity: str | None = None) -> list[str]:
    """Return what GPUs do as a table. `identity`: they are those of this experiment or job."""
    rows = [
        [
            gpu["host"],
            gpu["id"],
            gpu["name"],
            _format_amount(gpu["percent"], " %"),
            _format_memory(gpu),
            _format_power(gpu),
            _format_amount(gpu["temperature"], " °C"),
            gpu["bus"] or _UNKNOWN,
            " ".join(gpu["jobs"]) or _UNKNOWN,
        ]
        for gpu in gpus["gpus"]
    ]
    if rows:
        return build_table(_GPUS, rows, style)
    return [_NONE if identity is None else f"No job of {identity} has a GPU that its host reports."]


def list_gpu_models(gpus: wire.GpuList, style: Style) -> list[str]:
    """Return what GPUs the hosts have as a table."""
    rows = [
        [
            gpu["host"],
            gpu["id"],
            gpu["name"],
            _format_total(gpu),
            gpu["driver"] or _UNKNOWN,
            gpu.get("serial") or _UNKNOWN,  # an older server does not say
            gpu["uuid"],
        ]
        for gpu in gpus["gpus"]
    ]
    return build_table(_MODELS, rows, style) if rows else [_NONE]


def list_gpu_warnings(gpus: wire.GpuList) -> list[str]:
    """Return why GPUs of hosts cannot be read."""
    return [f"{trouble['host']}: {trouble['message']}" for trouble in gpus["troubles"]]


def _format_amount(amount: float | None, unit: str) -> str:
    return _UNKNOWN if amount is None else f"{amount:.0f}{unit}"


def _format_memory(gpu: wire.GpuView) -> str:
    used = _UNKNOWN if gpu["mem_used"] is None else format_gib(gpu["mem_used"])
    return f"{used}/{_format_total(gpu)}"


def _format_total(gpu: wire.GpuView) -> str:
    return _UNKNOWN if gpu["mem_total"] is None else f"{format_gib(gpu['mem_total'])} GiB"


def _format_power(gpu: wire.GpuView) -> str:
    if gpu["power"] is None:
        return _UNKNOWN
    return f"{gpu['power']:.0f} W" if gpu["power_limit"] is None else f"{gpu['power']:.0f}/{gpu['power_limit']:.0f} W"
