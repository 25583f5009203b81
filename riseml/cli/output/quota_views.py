"""Quotas and usage as lines. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from riseml.analysis.csv_table import list_csv_lines
from riseml.base.amounts import format_bytes
from riseml.cli.output.style import Style
from riseml.cli.output.tables import Column, build_table
from riseml.cli.output.text import format_duration

if TYPE_CHECKING:
    from riseml import wire

_NO_TEAM = (
    "This server has one user, and no quotas.",
    "On a server for a team, a quota is what the experiments of one user or one project use together: GPUs, cores,"
    " memory, experiments that run and wait, and bytes of projects, logs and outputs.",
)
_UNKNOWN = "-"
_MIB = 1 << 20
_TITLES: tuple[tuple[wire.LimitName, str], ...] = (
    ("gpus", "GPUS"),
    ("cpus", "CORES"),
    ("mem_mib", "MEM"),
    ("running", "RUNNING"),
    ("waiting", "WAITING"),
    ("project_bytes", "PROJECTS"),
    ("log_bytes", "LOGS"),
    ("output_bytes", "OUTPUTS"),
)
_USAGE = (
    Column("GPU HOURS", right=True),
    Column("USED", right=True),
    Column("CORE HOURS", right=True),
    Column("EXPERIMENTS", right=True),
    Column("WAITED", right=True),
    Column("WAITING", right=True),
)


def list_quotas(quotas: wire.QuotaList, style: Style) -> list[str]:
    """Return quotas as a table: what is in use, and the limit behind a slash where there is one."""
    if not quotas["team"]:
        return list(_NO_TEAM)
    columns = (Column("QUOTA OF", shrinks=True), *(Column(title, right=True) for _, title in _TITLES))
    rows = []
    for quota in quotas["quotas"]:
        title = quota["name"] if quota["kind"] == "user" else f"project {quota['name']}"
        weight = f" (weight {quota['weight']:g})" if quota["weight"] != 1 else ""
        rows.append([f"{title}{weight}", *(_show_amount(quota, name) for name, _ in _TITLES)])
    return build_table(columns, rows, style)


def _show_amount(quota: wire.QuotaView, name: wire.LimitName) -> str:
    limit = quota["limits"][name]
    used = _format(name, quota["used"][name])
    return used if limit is None else f"{used}/{_format(name, limit)}"


def _format(name: wire.LimitName, amount: float | None) -> str:
    if amount is None:
        return _UNKNOWN
    if name == "mem_mib":
        return format_bytes(amount * _MIB)
    return format_bytes(amount) if name.endswith("_bytes") else f"{amount:g}"


def list_usage(usage: wire.UsageList, style: Style) -> list[str]:
    """Return usage as a table."""
    if not usage["rows"]:
        return [f"No experiment had a place since {usage['since']}, and none waits."]
    rows = [
        [
            row["name"],
            f"{row['gpu_hours']:.2f}",
            _UNKNOWN if row["gpu_hours_used"] is None else f"{row['gpu_hours_used']:.2f}",
            f"{row['core_hours']:.2f}",
            str(row["experiments"]),
            format_duration(row["waited"]),
            str(row["waiting"]),
        ]
        for row in usage["rows"]
    ]
    return build_table((Column(usage["by"].upper(), shrinks=True), *_USAGE), rows, style)


def list_usage_csv(usage: wire.UsageList) -> list[str]:
    """Return usage as CSV, with all digits; times in seconds."""
    titles = (usage["by"], "gpu_hours", "gpu_hours_used", "core_hours", "experiments", "waited_seconds", "waiting")
    rows = [
        (
            row["name"],
            row["gpu_hours"],
            row["gpu_hours_used"],
            row["core_hours"],
            row["experiments"],
            row["waited"],
            row["waiting"],
        )
        for row in usage["rows"]
    ]
    return list_csv_lines(titles, rows)
