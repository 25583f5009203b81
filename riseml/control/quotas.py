"""Quotas: what all experiments of one user, or of one team project, may use together. Pure.

An experiment counts for its user, and for its team project if it has one. It counts with its whole gang for as long as
it has a place, also when some of its jobs have ended: another attempt of one job takes the same place again.

An experiment whose priority is below 0 borrows: it does not count, and no quota but one of 0 holds it. It starts only
when no experiment of another user that may use the pool by its quota waits for room. What runs is never stopped.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import NamedTuple

from riseml.base.amounts import format_bytes
from riseml.base.records import dataclass
from riseml.base.states import TERMINAL, JobDuty
from riseml.model import Experiment, Plan
from riseml.spec.server.types import QuotaDefaults, QuotaLimits

_SLACK = 1e-6  # cores: sums of fractions such as 0.1 are not exact
_MIB = 1 << 20


class AccountKind(enum.StrEnum):
    """What has a quota."""

    USER = "user"
    PROJECT = "project"


class Account(NamedTuple):
    """A user, or a team project."""

    kind: AccountKind
    name: str

    def __str__(self) -> str:
        return self.name if self.kind is AccountKind.USER else f"the project {self.name}"


class HeldAmounts(NamedTuple):
    """What experiments hold, or one experiment needs: the amounts that wait until they are free."""

    gpus: int = 0
    cpus: float = 0.0  # cores
    mem: int = 0  # MiB
    running: int = 0  # experiments

    def plus(self, other: HeldAmounts) -> HeldAmounts:
        """Return the sums."""
        return HeldAmounts(
            self.gpus + other.gpus, self.cpus + other.cpus, self.mem + other.mem, self.running + other.running
        )


NOTHING = HeldAmounts()


@dataclass(frozen=True, slots=True)
class OwnQuota:
    """What an administrator has set for one account. What has no value there is as server.yml says."""

    # by the field of QuotaLimits; None: no limit. A whole number stays one when it is read again.
    limits: Mapping[str, int | float | None] = field(default_factory=dict)
    weight: float | None = None  # of the hours of a project's experiments: 2 counts them half; None: 1


@dataclass(frozen=True, slots=True)
class QuotaTable:
    """The quotas in force."""

    defaults: QuotaDefaults = QuotaDefaults()
    own: Mapping[Account, OwnQuota] = field(default_factory=dict)

    def find_limits(self, account: Account) -> QuotaLimits:
        """Return the limits of an account."""
        default = self.defaults.user if account.kind is AccountKind.USER else self.defaults.project
        own = self.own.get(account)
        return default if own is None else replace(default, **own.limits)  # type: ignore[arg-type]  # fields by name

    def find_weight(self, project: str | None) -> float:
        """Return the weight of a team project; 1 for an experiment that belongs to none."""
        own = None if project is None else self.own.get(Account(AccountKind.PROJECT, project))
        return 1.0 if own is None or own.weight is None else own.weight


@dataclass(frozen=True, slots=True)
class QuotaRules:
    """What a team's server knows about its users when it serves the queue."""

    quotas: QuotaTable = QuotaTable()
    usage: Mapping[str, float] = field(default_factory=dict)  # user -> hours that still count, see `control.usage`


@dataclass(frozen=True, slots=True)
class QuotaHold:
    """Why a quota holds an experiment. None of the amounts is a count of the pool."""

    account: Account
    resource: str  # the field of QuotaLimits
    limit: float
    in_use: float  # what the account uses now
    need: float  # what the experiment adds

    def describe_limit(self) -> str:
        """Return `paul may use 4 GPUs at the same time`: a sentence that stays true while others start and end."""
        verb = "run" if self.resource == "running" else "use"
        return f"{self.account} may {verb} {_show(self.resource, self.limit)} at the same time"

    def describe_use(self) -> str:
        """Return `paul uses 4 of 4 GPUs`."""
        in_use = f"{max(0.0, round(self.in_use, 3)):g}"
        if self.resource == "mem":
            in_use = _show(self.resource, self.in_use)
        used = f"{in_use} of {_show(self.resource, self.limit, several=True)}"
        return f"{self.account} {'runs' if self.resource == 'running' else 'uses'} {used}"

    def describe_need(self) -> str:
        """Return `it needs 8 GPUs`."""
        return f"it {'is' if self.resource == 'running' else 'needs'} {_show(self.resource, self.need)}"

    @property
    def can_never_start(self) -> bool:
        """True when the experiment needs more than the quota has in all."""
        return exceeds(self.need, self.limit)


_NOUNS = {"gpus": "GPU", "cpus": "core", "running": "experiment"}


def _show(resource: str, amount: float, *, several: bool = False) -> str:
    """Return an amount with its unit: `4 GPUs`, `1 core`, `512 MiB`; `several`: the unit is in the plural."""
    if resource == "mem":
        return format_bytes(amount * _MIB)
    return f"{amount:g} {_NOUNS[resource]}{'s' if several or amount != 1 else ''}"


def exceeds(amount: float, limit: float | None) -> bool:
    """Return True when an amount is more than a limit allows; None allows any amount."""
    return limit is not None and amount > limit + _SLACK


def list_accounts(user: str, team_project: str | None) -> tuple[Account, ...]:
    """Return the accounts for which an experiment counts."""
    own = Account(AccountKind.USER, user)
    return (own,) if team_project is None else (own, Account(AccountKind.PROJECT, team_project))


def measure_plan(plan: Plan) -> HeldAmounts:
    """Return what an experiment of this plan holds for as long as it has a place."""
    needs = [job.resources for job in plan.jobs if job.part is not JobDuty.PREPARES]
    return HeldAmounts(
        sum(need.gpus for need in needs), sum(need.cpus for need in needs), sum(need.mem for need in needs), running=1
    )


def borrows(experiment: Experiment) -> bool:
    """Return True for an experiment that uses what is idle, and does not count for a quota."""
    return plan_borrows(experiment.plan)


def plan_borrows(plan: Plan) -> bool:
    """Return True for the plan of an experiment that borrows."""
    return plan.policy.priority < 0


def holds_place(experiment: Experiment) -> bool:
    """Return True while an experiment has its place."""
    return experiment.placed_at is not None and experiment.state not in TERMINAL


def find_hold(account: Account, limits: QuotaLimits, in_use: HeldAmounts, need: HeldAmounts) -> QuotaHold | None:
    """Return the first limit that an account would exceed with another experiment; None: it exceeds none."""
    for resource in HeldAmounts._fields:
        limit = getattr(limits, resource)
        more = getattr(need, resource)
        if limit is not None and more > 0 and exceeds(getattr(in_use, resource) + more, limit):
            return QuotaHold(account, resource, limit, getattr(in_use, resource), more)
    return None


def find_forbidden(account: Account, limits: QuotaLimits, need: HeldAmounts) -> QuotaHold | None:
    """Return the first limit of 0 that stops an experiment for good, also one that borrows."""
    for resource in HeldAmounts._fields:
        if getattr(limits, resource) == 0 and getattr(need, resource) > 0:
            return QuotaHold(account, resource, 0, 0, getattr(need, resource))
    return None


class QuotaLedger:
    """What the experiments of each account hold while one pass serves the queue.

    Args:
        experiments: every open experiment, as the pass begins.
        quotas: that are in force.
    """

    def __init__(self, experiments: Iterable[Experiment], quotas: QuotaTable) -> None:
        self._quotas = quotas
        self._limits: dict[Account, QuotaLimits] = {}
        self._needs: dict[int, HeldAmounts] = {}  # by the id of an experiment
        self._in_use: dict[Account, HeldAmounts] = {}
        self._unplaced: dict[Account, HeldAmounts] = {}  # of those that got no place in this pass
        self._waiting_users: set[str] = set()  # users whose experiments wait for room, though their quotas have some
        for experiment in experiments:
            if holds_place(experiment):
                self.add(experiment)

    def add(self, experiment: Experiment) -> None:
        """Count an experiment that has its place."""
        if not borrows(experiment):
            self._count(experiment, self._in_use)

    def find_hold(self, experiment: Experiment) -> QuotaHold | None:
        """Return the quota that holds an experiment now; None: no quota does."""
        holds = (self._judge(experiment, account, limits, {}) for account, limits in self._list_limits(experiment))
        return next((hold for hold in holds if hold is not None), None)

    def yields_to_others(self, experiment: Experiment) -> bool:
        """Return True when an experiment borrows, and one of another user waits that may use the pool by its quota."""
        return borrows(experiment) and bool(self._waiting_users - {experiment.owner.user})

    def note_unplaced(self, experiment: Experiment, *, could_start: Callable[[Experiment], bool]) -> QuotaHold | None:
        """Count an experiment that has got no place. Return the quota that would hold it if those before it had got
        theirs: its reason does not change with each pass that finds no room.

        `could_start` returns whether the hosts could hold an experiment if nothing ran on them.
        """
        if borrows(experiment):
            return None
        user = experiment.owner.user
        if user not in self._waiting_users and could_start(experiment):
            self._waiting_users.add(user)
        holds = (
            self._judge(experiment, account, limits, self._unplaced)
            for account, limits in self._list_limits(experiment)
        )
        hold = next((hold for hold in holds if hold is not None), None)
        self._count(experiment, self._unplaced)
        return hold

    def _judge(
        self, experiment: Experiment, account: Account, limits: QuotaLimits, more: Mapping[Account, HeldAmounts]
    ) -> QuotaHold | None:
        need = self._measure(experiment)
        if borrows(experiment):
            return find_forbidden(account, limits, need)
        in_use = self._in_use.get(account, NOTHING).plus(more.get(account, NOTHING))
        return find_hold(account, limits, in_use, need)

    def _list_limits(self, experiment: Experiment) -> Iterator[tuple[Account, QuotaLimits]]:
        for account in list_accounts(experiment.owner.user, experiment.team_project):
            if account not in self._limits:
                self._limits[account] = self._quotas.find_limits(account)
            yield account, self._limits[account]

    def _count(self, experiment: Experiment, sums: dict[Account, HeldAmounts]) -> None:
        need = self._measure(experiment)
        for account in list_accounts(experiment.owner.user, experiment.team_project):
            sums[account] = sums.get(account, NOTHING).plus(need)

    def _measure(self, experiment: Experiment) -> HeldAmounts:
        if experiment.id not in self._needs:
            self._needs[experiment.id] = measure_plan(experiment.plan)
        return self._needs[experiment.id]
