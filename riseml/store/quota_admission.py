"""Accept or refuse a submission by the quotas of its user and its team project."""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from riseml.base.amounts import format_bytes
from riseml.base.errors import NotFound, Refused
from riseml.base.records import dataclass
from riseml.control.quotas import (
    NOTHING,
    Account,
    QuotaTable,
    exceeds,
    find_forbidden,
    find_hold,
    list_accounts,
    measure_plan,
    plan_borrows,
)
from riseml.spec.server.types import QuotaDefaults, QuotaLimits
from riseml.store.insertion import NewExperiments
from riseml.store.quotas import count_waiting, list_snapshots, select_quotas

_BYTES = {"log_bytes": ("logs", "riseml clean"), "output_bytes": ("outputs", "riseml rm output://ID")}


@dataclass(frozen=True, slots=True)
class MeasuredBytes:
    """What the files of an account take, as last measured."""

    log_bytes: int = 0
    output_bytes: int = 0


NOTHING_MEASURED = MeasuredBytes()


class QuotaAdmission:
    """Refuses a submission that is above a quota. It is called within the transaction that accepts the submission.

    Args:
        defaults: the quotas of server.yml.
        measure_snapshot: returns the bytes of a state of a project's files.
        find_measured: returns what the logs and outputs of an account take.
    """

    def __init__(
        self,
        defaults: QuotaDefaults,
        measure_snapshot: Callable[[str], int],
        find_measured: Callable[[Account], MeasuredBytes] = lambda _: NOTHING_MEASURED,
    ) -> None:
        self._defaults = defaults
        self._measure_snapshot = measure_snapshot
        self._find_measured = find_measured

    def admit(self, connection: sa.Connection, submitted: NewExperiments) -> None:
        """Let a submission in.

        Raises:
            Refused: it is above a quota, or none of its experiments could ever start within one.
        """
        table = QuotaTable(self._defaults, select_quotas(connection))
        for account in list_accounts(submitted.owner.user, submitted.team_project):
            limits = table.find_limits(account)
            _refuse_too_large(account, limits, submitted)
            _refuse_too_many(connection, account, limits, submitted)
            self._refuse_full(connection, account, limits, submitted)

    def _refuse_full(
        self, connection: sa.Connection, account: Account, limits: QuotaLimits, submitted: NewExperiments
    ) -> None:
        measured = self._find_measured(account)
        for resource, (noun, remedy) in _BYTES.items():
            limit = getattr(limits, resource)
            size = getattr(measured, resource)
            if limit is not None and size >= limit:
                raise Refused(
                    f"the {noun} of {account} take {format_bytes(size)}, and the quota is {format_bytes(limit)}",
                    f"`{remedy}` makes room, or an admin sets another quota",
                )
        if limits.project_bytes is None or not submitted.snapshot:
            return
        digests = {*list_snapshots(connection, account), submitted.snapshot}
        total = sum(map(self._measure, digests))
        if exceeds(total, limits.project_bytes):
            raise Refused(
                f"the project files of {account} would take {format_bytes(total)}, and the quota is"
                f" {format_bytes(limits.project_bytes)}",
                "leave large files out with a .risemlignore, or ask an admin for a larger quota",
            )

    def _measure(self, digest: str) -> int:
        try:
            return self._measure_snapshot(digest)
        except NotFound:  # `riseml clean` has removed it
            return 0


def _refuse_too_large(account: Account, limits: QuotaLimits, submitted: NewExperiments) -> None:
    """Refuse experiments that could not start if nothing else of the account ran."""
    plans = [plan for plan, _ in submitted.plans]
    plans += [plan for _, plan in submitted.search.templates] if submitted.search is not None else []
    for plan in plans:
        need = measure_plan(plan)
        borrows = plan_borrows(plan)
        hold = find_forbidden(account, limits, need) if borrows else find_hold(account, limits, NOTHING, need)
        if hold is not None:
            raise Refused(
                f"this can never start: {hold.describe_need()}, and {hold.describe_limit()}",
                "lower train.resources or the number of workers, or ask an admin for a larger quota",
            )


def _refuse_too_many(
    connection: sa.Connection, account: Account, limits: QuotaLimits, submitted: NewExperiments
) -> None:
    if limits.waiting is None:
        return
    new = len(submitted.plans) if submitted.search is None else (submitted.concurrency or 1)
    waiting = count_waiting(connection, account)
    if waiting + new > limits.waiting:
        raise Refused(
            f"{account} may have {limits.waiting} experiments that wait, and has {waiting}: {new} more are too many",
            "wait until some of them have started, end some with `riseml kill`, or ask an admin for a larger quota",
        )
