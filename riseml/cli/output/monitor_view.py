"""What jobs use, beside what they asked for, as lines. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from riseml.cli.output.cards import build_cards
from riseml.cli.output.style import Style
from riseml.cli.output.tables import Column
from riseml.cli.output.text import format_bytes, format_cores, format_of
from riseml.names import LOCAL_HOST, THIS_MACHINE

if TYPE_CHECKING:
    from riseml import wire

_UNKNOWN = "-"
_HEADS = (Column("ID"), Column("STATE", states=True), Column("PROJECT"))
_HOST = Column("HOST")
_USE = tuple(Column(title, right=True) for title in ("CPU used/asked", "MEM used/asked", "MEM limit"))
_GPUS = (Column("GPU", right=True), Column("GPU MEM", right=True))
_TRAFFIC = tuple(Column(title, right=True) for title in ("NET in", "NET out", "DISK read", "DISK write"))


def list_use(samples: Sequence[wire.SampleView], style: Style) -> list[str]:
    """Return what jobs use: a table where it fits, else some lines for each job. The amounts are the same.

    A column that is unknown for every job is left out.
    """
    heads, rows = [*_HEADS], [_list_heads(one) for one in samples]
    if any(one["host"] not in (None, LOCAL_HOST, THIS_MACHINE) for one in samples):
        heads.append(_HOST)
        rows = [[*row, one["host"] or _UNKNOWN] for row, one in zip(rows, samples, strict=True)]
    columns = [*heads]
    cells = [[*_list_use(one), *_list_gpus(one), *_list_traffic(one)] for one in samples]
    for at, column in enumerate((*_USE, *_GPUS, *_TRAFFIC)):
        if column in _USE or any(row[at] != _UNKNOWN for row in cells):
            columns.append(column)
            rows = [[*row, found[at]] for row, found in zip(rows, cells, strict=True)]
    return build_cards(columns, rows, len(heads), style)


def _list_heads(one: wire.SampleView) -> list[str]:
    return [one["id"], one["state"], one["project"]]


def _list_use(one: wire.SampleView) -> list[str]:
    cpu, used, limit = one["cpu"], one["mem_used"], one["mem_total"]
    return [
        format_of(_UNKNOWN if cpu is None else format_cores(cpu / 100), format_cores(one["cpus"])),
        format_of(_UNKNOWN if used is None else format_bytes(used), format_bytes(one["mem_mib"] * 2**20)),
        _UNKNOWN if limit is None else format_bytes(limit),
    ]


def _list_gpus(one: wire.SampleView) -> list[str]:
    """Return what its GPUs do; their number is known before they are read."""
    busy = "" if one["gpu"] is None else f"{one['gpu']:.0f} % of "
    count = f"{one['gpus']} GPU{'' if one['gpus'] == 1 else 's'}"
    used, whole = one["gpu_mem_used"], one["gpu_mem_total"]
    memory = _UNKNOWN if used is None or whole is None else format_of(format_bytes(used), format_bytes(whole))
    return [f"{busy}{count}" if one["gpus"] or busy else _UNKNOWN, memory]


def _list_traffic(one: wire.SampleView) -> list[str]:
    rates = (one["net_in"], one["net_out"], one["disk_read"], one["disk_write"])
    return [_UNKNOWN if rate is None else f"{format_bytes(rate)}/s" for rate in rates]
