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
    Column("UUID", shrinks=True),
)
_NONE = "No GPU is known on any host; `riseml pool check` says why, where there should be one."


def list_gpu_use(found: wire.GpuList, style: Style, *, identity: str | None = None) -> list[str]:
    """Return what GPUs do as a table. `identity`: they are those of this experiment or job."""
    rows = [
        [
            one["host"],
            one["id"],
            one["name"],
            _format_amount(one["percent"], " %"),
            _format_memory(one),
            _format_power(one),
            _format_amount(one["temperature"], " °C"),
            one["bus"] or _UNKNOWN,
            " ".join(one["jobs"]) or _UNKNOWN,
        ]
        for one in found["gpus"]
    ]
    if rows:
        return build_table(_GPUS, rows, style)
    return [_NONE if identity is None else f"No job of {identity} has a GPU that its host reports."]


def list_gpu_models(found: wire.GpuList, style: Style) -> list[str]:
    """Return what GPUs the hosts have as a table."""
    rows = [
        [one["host"], one["id"], one["name"], _format_total(one), one["driver"] or _UNKNOWN, one["uuid"]]
        for one in found["gpus"]
    ]
    return build_table(_MODELS, rows, style) if rows else [_NONE]


def list_gpu_warnings(found: wire.GpuList) -> list[str]:
    """Return why GPUs of hosts cannot be read."""
    return [f"{one['host']}: {one['message']}" for one in found["troubles"]]


def _format_amount(amount: float | None, unit: str) -> str:
    return _UNKNOWN if amount is None else f"{amount:.0f}{unit}"


def _format_memory(one: wire.GpuView) -> str:
    used = _UNKNOWN if one["mem_used"] is None else format_gib(one["mem_used"])
    return f"{used}/{_format_total(one)}"


def _format_total(one: wire.GpuView) -> str:
    return _UNKNOWN if one["mem_total"] is None else f"{format_gib(one['mem_total'])} GiB"


def _format_power(one: wire.GpuView) -> str:
    if one["power"] is None:
        return _UNKNOWN
    return f"{one['power']:.0f} W" if one["power_limit"] is None else f"{one['power']:.0f}/{one['power_limit']:.0f} W"
