"""The routes of quotas and usage: what users and team projects may use, and what they have used."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query

from riseml import wire
from riseml.base.accounts import check_account_name
from riseml.base.errors import NotFound, Refused, UsageError
from riseml.base.names import JobName
from riseml.control.permissions import may_see, sees_everything
from riseml.control.quotas import Account, AccountKind
from riseml.model import Caller
from riseml.server.api.callers import CallerOf
from riseml.server.api.views.quota_views import FIELDS, show_quotas
from riseml.server.api.views.usage_views import measure_gpu_use, show_usage
from riseml.server.clock import now
from riseml.server.log_line import LogLine, write_line
from riseml.server.services import Services, TeamParts
from riseml.spec.schema.near_words import suggest_word
from riseml.store.placements import PlacementRecord
from riseml.store.samples.sample_rows import SampleRow, Span

_DAYS = 7
_MOST_DAYS = 3660

AccountName = Annotated[str, Path(max_length=32)]
Kind = Annotated[AccountKind, Path()]
OfUser = Annotated[str | None, Query(max_length=32, description="the quota of this user alone")]
OfProject = Annotated[str | None, Query(max_length=32, description="the quota of this team project alone")]
Since = Annotated[datetime | None, Query(description="RFC 3339; without it the last 7 days")]

log = logging.getLogger(__name__)


def add_quota_routes(router: APIRouter, services: Services) -> None:
    """Add /quotas and /usage."""

    @router.get("/quotas")
    def list_quotas(caller: CallerOf, user: OfUser = None, project: OfProject = None) -> wire.QuotaList:
        if services.team is None:
            return {"team": False, "quotas": []}
        accounts = _choose_accounts(caller, user, project, services)
        return {"team": True, "quotas": show_quotas(accounts, services.team, services)}

    @router.post("/quotas/{kind}/{name}")
    def change_quota(
        caller: CallerOf, kind: Kind, name: AccountName, change: Annotated[wire.QuotaChange, Body()]
    ) -> wire.QuotaView:
        team = _require_team(services)
        account = Account(kind, check_account_name(kind.value, name))
        _require_account(account, services)
        limits = _read_limits(change)
        defaults = [FIELDS[limit] for limit in change.get("defaults", [])]
        if kind is AccountKind.USER and "weight" in change:
            raise UsageError("a user has no weight", "a team project has one: `riseml quota set --project vision`")
        services.stores.quotas.change(account, limits, defaults, change.get("weight"))
        write_line(log, LogLine(f"{caller.user} set the quota of {account}: {', '.join(sorted(change)) or 'nothing'}"))
        services.loops.wake.set()
        return show_quotas([account], team, services)[0]

    @router.get("/usage")
    def read_usage(caller: CallerOf, by: wire.AccountKindName = "user", since: Since = None) -> wire.UsageList:
        until = now()
        begin = _choose_begin(since, until)
        placements = services.stores.placements.load_since(begin, caller)
        experiments = services.stores.experiments.load_world().experiments
        waiting = (
            experiment for experiment in experiments if may_see(caller, experiment.owner.user, experiment.team_project)
        )
        reader = _UseReader(services)
        return show_usage(by, (begin, until), placements, waiting, reader.measure_use)


def _require_team(services: Services) -> TeamParts:
    if services.team is None:
        raise Refused(
            "this server has one user, and no quotas",
            "a server of a team has them: `RISEML_HOME/server.yml` makes it one",
        )
    return services.team


def _require_account(account: Account, services: Services) -> None:
    """Check that there is such a user or team project; one that was removed may still have a quota to change.

    Raises:
        NotFound: there is none.
    """
    stores = services.stores
    is_user = account.kind is AccountKind.USER
    names = [user.name for user in stores.accounts.list_users()] if is_user else []
    names += [] if is_user else [project.name for project in stores.team_projects.list_projects()]
    if account.name in names or account in stores.quotas.load():
        return
    near = suggest_word(account.name, names)
    question = f"do you mean {near}? " if near else ""
    noun = "user" if is_user else "team project"
    raise NotFound(f"there is no {noun} {account.name}", f"{question}`riseml {account.kind.value} list` shows them")


def _choose_accounts(caller: Caller, user: str | None, project: str | None, services: Services) -> list[Account]:
    """Return the accounts that a caller has asked for, and may see.

    Raises:
        NotFound: the caller may not see the account.
    """
    own_accounts = [Account(AccountKind.USER, caller.user)]
    own_accounts += [Account(AccountKind.PROJECT, name) for name, _ in caller.projects]
    named = [Account(AccountKind.USER, user)] if user is not None else []
    named += [Account(AccountKind.PROJECT, project)] if project is not None else []
    for account in named:
        check_account_name(account.kind.value, account.name)
        if not sees_everything(caller) and account not in own_accounts:
            raise NotFound(f"there is no {account.kind.value} {account.name}", "`riseml quota` shows your quotas")
    if named or not sees_everything(caller):
        return named or own_accounts
    of_users = {Account(AccountKind.USER, name) for name in services.stores.quotas.list_open_users()}
    every = {*own_accounts, *of_users, *services.stores.quotas.load()}
    return sorted(every, key=lambda account: (account.kind is AccountKind.PROJECT, account.name))


def _read_limits(change: wire.QuotaChange) -> Mapping[str, float | None]:
    values: dict[str, Any] = dict(change)
    limits = {field: values[name] for name, field in FIELDS.items() if name in values}
    both = sorted(name for name in change.get("defaults", []) if FIELDS[name] in limits)
    if both:
        raise UsageError(f"{both[0]} gets a value, and is to be as server.yml says", "give one of them")
    return limits


def _choose_begin(since: datetime | None, until: datetime) -> datetime:
    """Return when usage begins.

    Raises:
        UsageError: the time is in the future.
    """
    if since is None:
        return until - timedelta(days=_DAYS)
    begin = since.astimezone(UTC) if since.tzinfo else since.replace(tzinfo=UTC)
    if begin > until:
        raise UsageError(f"{since.isoformat()} is in the future", "usage is of a time that has passed: --since 7d")
    return max(begin, until - timedelta(days=_MOST_DAYS))


class _UseReader:
    """Reads the samples of placements. What cannot be read is not of_users."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def measure_use(self, record: PlacementRecord, span: Span) -> float | None:
        experiment = self._services.stores.experiments.get_experiment(record.experiment).experiment
        return measure_gpu_use(experiment.plan, record.experiment, span, self._read_minutes)

    def _read_minutes(self, experiment: int, job: JobName, span: Span) -> list[SampleRow]:
        try:
            return self._services.watchers.samples.store.read_rows(experiment, job, span)
        except OSError as error:
            log.info("samples of experiment %d cannot be read: %s", experiment, error)
            return []
