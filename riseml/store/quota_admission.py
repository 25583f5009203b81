"""Accept or refuse a submission by the quotas of its user and its team project."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

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

    @contextmanager
    def admit_change(
        self, connection: sa.Connection, *, user: str, team_project: str | None, adds: bool
    ) -> Iterator[None]:
        """Let a change of a set in, which the block stores.

        Args:
            connection: of the transaction that stores the change.
            user: the user of the set.
            team_project: to which the set belongs; None: to its user alone.
            adds: whether the change adds trials.

        Raises:
            Refused: more experiments would wait than a quota allows, or trials are added above a quota of bytes.
        """
        table = QuotaTable(self._defaults, select_quotas(connection))
        limits = {account: table.find_limits(account) for account in list_accounts(user, team_project)}
        if adds:
            for account, own in limits.items():
                self._refuse_full_disk(account, own)
        before = {account: count_waiting(connection, account) for account in limits}
        yield
        for account, own in limits.items():
            waiting = count_waiting(connection, account)
            if own.waiting is not None and waiting > own.waiting and waiting > before[account]:
                raise _make_waiting_refusal(account, own.waiting, before[account], waiting - before[account])

    def _refuse_full_disk(self, account: Account, limits: QuotaLimits) -> None:
        measured = self._find_measured(account)
        for resource, (noun, remedy) in _BYTES.items():
            limit = getattr(limits, resource)
            size = getattr(measured, resource)
            if limit is not None and size >= limit:
                raise Refused(
                    f"the {noun} of {account} take {format_bytes(size)}, and the quota is {format_bytes(limit)}",
                    f"`{remedy}` makes room, or an admin sets another quota",
                )

    def _refuse_full(
        self, connection: sa.Connection, account: Account, limits: QuotaLimits, submitted: NewExperiments
    ) -> None:
        self._refuse_full_disk(account, limits)
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
        raise _make_waiting_refusal(account, limits.waiting, waiting, new)


def _make_waiting_refusal(account: Account, limit: int, waiting: int, more: int) -> Refused:
    return Refused(
        f"{account} may have {limit} experiments that wait, and has {waiting}: {more} more are too many",
        "wait until some of them have started, end some with `riseml kill`, or ask an admin for a larger quota",
    )
