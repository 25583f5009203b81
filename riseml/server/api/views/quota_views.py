"""Quotas, and what counts for them, in the shape of the HTTP API."""

from __future__ import annotations

from collections.abc import Iterable

from riseml import wire
from riseml.base.errors import NotFound
from riseml.control.quotas import (
    NOTHING,
    Account,
    HeldAmounts,
    QuotaTable,
    borrows,
    holds_place,
    list_accounts,
    measure_plan,
)
from riseml.model import Experiment
from riseml.server.services import Services, TeamParts
from riseml.spec.server.types import QuotaLimits
from riseml.store.quota_admission import MeasuredBytes

_LIMITS: dict[str, wire.LimitName] = {
    "gpus": "gpus",
    "cpus": "cpus",
    "mem": "mem_mib",
    "running": "running",
    "waiting": "waiting",
    "project_bytes": "project_bytes",
    "log_bytes": "log_bytes",
    "output_bytes": "output_bytes",
}
"""The fields of QuotaLimits, and their names in the API."""

FIELDS = {name: field for field, name in _LIMITS.items()}
"""The names of limits in the API, and the fields of QuotaLimits."""


def show_quotas(accounts: Iterable[Account], team: TeamParts, services: Services) -> list[wire.QuotaView]:
    """Return the quotas of these accounts."""
    table = QuotaTable(team.ledger.defaults, services.stores.quotas.load())
    experiments = services.stores.experiments.load_world().experiments
    return [_show_quota(account, table, experiments, team, services) for account in accounts]


def _show_quota(
    account: Account, table: QuotaTable, experiments: Iterable[Experiment], team: TeamParts, services: Services
) -> wire.QuotaView:
    in_use = NOTHING
    for experiment in experiments:
        is_counted = holds_place(experiment) and not borrows(experiment)
        if is_counted and account in list_accounts(experiment.owner.user, experiment.team_project):
            in_use = in_use.plus(measure_plan(experiment.plan))
    waiting, snapshots = services.stores.quotas.count(account)
    own = table.own.get(account)
    names = [] if own is None else sorted(_LIMITS[field] for field in own.limits)
    return {
        "kind": "user" if account.kind == "user" else "project",
        "name": account.name,
        "limits": _show_limits(table.find_limits(account)),
        "used": _show_use(
            in_use, waiting, sum(_measure(digest, services) for digest in snapshots), team.meter.find_measured(account)
        ),
        "own": names,
        "weight": 1.0 if account.kind == "user" else table.find_weight(account.name),
    }


def _measure(digest: str, services: Services) -> int:
    try:
        return services.stores.snapshots.measure_files(digest)
    except NotFound:  # `riseml clean` has removed it
        return 0


def _show_limits(limits: QuotaLimits) -> wire.QuotaAmounts:
    return {
        "gpus": limits.gpus,
        "cpus": limits.cpus,
        "mem_mib": limits.mem,
        "running": limits.running,
        "waiting": limits.waiting,
        "project_bytes": limits.project_bytes,
        "log_bytes": limits.log_bytes,
        "output_bytes": limits.output_bytes,
    }


def _show_use(in_use: HeldAmounts, waiting: int, project_bytes: int, measured: MeasuredBytes) -> wire.QuotaAmounts:
    return {
        "gpus": in_use.gpus,
        "cpus": round(in_use.cpus, 3),
        "mem_mib": in_use.mem,
        "running": in_use.running,
        "waiting": waiting,
        "project_bytes": project_bytes,
        "log_bytes": measured.log_bytes,
        "output_bytes": measured.output_bytes,
    }
