"""Secrets and the credentials of registries, of users and of projects, and the values that open runs use.

The store has each value sealed (`store.sealed_variables`), over its kind, its owner and its name: a value opens in its
own place alone. A run keeps the values that its jobs were given until it is closed, so that they stay masked in its log
when somebody replaces or removes the secret meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import Enum

import sqlalchemy as sa

from riseml.base.errors import NotFound
from riseml.base.records import dataclass
from riseml.base.roles import Role
from riseml.base.secrets import RegistryCredential
from riseml.model import Caller, Environment, Experiment
from riseml.store.database import Database
from riseml.store.schema import experiments, registries, run_secrets, secrets
from riseml.store.sealed_variables import Place, ResealText, VariableSeals


class OwnerKind(Enum):
    """Who may have secrets."""

    USER = "user"
    PROJECT = "project"


@dataclass(frozen=True, slots=True)
class SecretOwner:
    """The user or the project that a secret belongs to."""

    kind: OwnerKind
    name: str

    def describe(self) -> str:
        """Return the owner for people."""
        return f"the project {self.name}" if self.kind is OwnerKind.PROJECT else self.name


@dataclass(frozen=True, slots=True)
class SecretEntry:
    """What may be shown of a secret."""

    name: str
    owner: SecretOwner
    set_at: datetime
    set_by: str  # user
    used_at: datetime | None  # when a job last started with it; None: none has


@dataclass(frozen=True, slots=True)
class RegistryEntry:
    """What may be shown of the credential of a registry."""

    host: str  # with its port: `registry.lab:5000`
    login: str  # name of the user at the registry
    owner: SecretOwner
    set_at: datetime
    set_by: str  # user
    used_at: datetime | None  # when an image was last requested with it; None: none was


class SecretStore:
    """The secrets of one server.

    Args:
        database: of the server.
        seals: seal the values.
        is_team: only team projects have secrets, for their members; else a project is a name that anybody writes.
    """

    def __init__(self, database: Database, seals: VariableSeals, *, is_team: bool = False) -> None:
        self._database = database
        self._seals = seals
        self._is_team = is_team

    def set_secret(self, owner: SecretOwner, name: str, value: str, user: str, moment: datetime) -> SecretEntry:
        """Store a secret in place of an earlier one; return what may be shown of it.

        Args:
            owner: whose it is.
            name: of the secret.
            value: that nobody reads over the API.
            user: who sets it.
            moment: now.

        Raises:
            StoreError: the store or the key cannot be written.
        """
        with self._database.write_transaction() as connection:
            sealed = self._seals.seal_text(_place_secret(owner, name), value)
            connection.execute(sa.delete(secrets).where(_is_secret(owner, name)))
            row = {"owner_kind": owner.kind.value, "owner": owner.name, "name": name, "value": sealed}
            connection.execute(sa.insert(secrets).values(**row, set_at=moment, set_by=user))
        return SecretEntry(name, owner, moment, user, None)

    def remove_secret(self, owner: SecretOwner, name: str) -> None:
        """Remove a secret.

        Raises:
            NotFound: there is none.
        """
        with self._database.write_transaction() as connection:
            removed = connection.execute(sa.delete(secrets).where(_is_secret(owner, name))).rowcount
        if not removed:
            raise NotFound(f"{owner.describe()} has no secret {name}", "`riseml secret list` shows all of yours")

    def list_secrets(self, owners: Sequence[SecretOwner]) -> list[SecretEntry]:
        """Return the secrets of these owners, without their values, by name."""
        query = sa.select(secrets).where(_belongs(secrets, owners)).order_by(secrets.c.name, secrets.c.owner_kind)
        with self._database.read_transaction() as connection:
            rows = connection.execute(query).mappings().all()
        return [
            SecretEntry(row["name"], _read_owner(row), row["set_at"], row["set_by"], row["used_at"]) for row in rows
        ]

    def list_owners(self, caller: Caller) -> list[SecretOwner]:
        """Return whose secrets a caller sees: the caller's own, then those of projects.

        On a team's server these are the projects in which the caller is a member or more. A key that is bound to a
        project sees those of this project alone.
        """
        if self._is_team:
            used = sorted(name for name, role in caller.projects if role >= Role.MEMBER)
            own = [] if caller.project is not None else [SecretOwner(OwnerKind.USER, caller.user)]
            return [*own, *(SecretOwner(OwnerKind.PROJECT, name) for name in used if caller.project in (None, name))]
        with self._database.read_transaction() as connection:
            projects = {
                name
                for table in (secrets, registries)
                for name in connection.execute(
                    sa.select(table.c.owner).where(table.c.owner_kind == OwnerKind.PROJECT.value).distinct()
                ).scalars()
            }
        return [
            SecretOwner(OwnerKind.USER, caller.user),
            *(SecretOwner(OwnerKind.PROJECT, name) for name in sorted(projects)),
        ]

    def list_run_owners(self, experiment: Experiment) -> list[SecretOwner]:
        """Return whose secrets a run uses, the first ones first. One that a key of its team project has submitted uses
        those of the project alone, also when one of them is removed later.
        """
        if experiment.plan.bound:
            return [SecretOwner(OwnerKind.PROJECT, experiment.team_project or experiment.project)]
        return self.list_new_owners(experiment.owner.user, experiment.project, experiment.team_project)

    def list_new_owners(self, user: str, project: str, team_project: str | None) -> list[SecretOwner]:
        """Return whose secrets a new run uses, the first ones first.

        On a team's server a run of a team project uses those of the project first: what a key that is bound to the
        project may submit does not depend on what its user has besides.

        Args:
            user: of the run.
            project: its name, which a user writes as they like.
            team_project: to which it belongs; None: to its user alone.
        """
        own = SecretOwner(OwnerKind.USER, user)
        if not self._is_team:
            return [own, SecretOwner(OwnerKind.PROJECT, project)]
        return [own] if team_project is None else [SecretOwner(OwnerKind.PROJECT, team_project), own]

    def peek_secrets(self, owners: Sequence[SecretOwner], names: Iterable[str]) -> dict[str, str]:
        """Return the values that a run would get, without noting their use.

        Raises:
            NotFound, EngineError: as `take_secrets`.
        """
        with self._database.read_transaction() as connection:
            return {name: self._open_first(connection, owners, name)[1] for name in dict.fromkeys(names)}

    def take_secrets(
        self,
        owners: Sequence[SecretOwner],
        names: Iterable[str],
        experiment: int,
        moment: datetime,
        passed: Environment = (),
    ) -> dict[str, str]:
        """Return the newest values for a run that starts, and note them as values that its log must not show.

        Args:
            owners: the first one that has a secret of a name gives it.
            names: of the secrets.
            experiment: id of the record that uses them.
            moment: now.
            passed: further values that its log must not show, with their names.

        Raises:
            NotFound: none of the owners has a secret of a name.
            EngineError: a value does not open.
        """
        values: dict[str, str] = {}
        with self._database.write_transaction() as connection:
            for name in dict.fromkeys(names):
                owner, values[name] = self._open_first(connection, owners, name)
                connection.execute(secrets.update().where(_is_secret(owner, name)).values(used_at=moment))
            noted = set(self._select_values(connection, experiment))
            place = _place_run(experiment)
            rows = [
                {"experiment_id": experiment, "name": name, "value": self._seals.seal_text(place, value)}
                for name, value in (*values.items(), *passed)
                if value not in noted
            ]
            if rows:
                connection.execute(sa.insert(run_secrets), rows)
        return values

    def read_run_values(self, experiment: int) -> tuple[str, ...]:
        """Return every value of a secret that a run has been given since it began; none once it is closed."""
        with self._database.read_transaction() as connection:
            return tuple(self._select_values(connection, experiment))

    def list_runs(self) -> frozenset[int]:
        """Return the runs of which the store has values."""
        with self._database.read_transaction() as connection:
            return frozenset(connection.execute(sa.select(run_secrets.c.experiment_id).distinct()).scalars())

    def erase_run(self, experiment: int) -> bool:
        """Remove the values of a run that is closed. Return True when there were some."""
        with self._database.write_transaction() as connection:
            own = run_secrets.c.experiment_id == experiment
            return bool(connection.execute(sa.delete(run_secrets).where(own)).rowcount)

    def erase_closed(self) -> bool:
        """Remove the values of runs that are closed. Return True when there were some."""
        still_open = sa.select(experiments.c.id).where(experiments.c.closed.is_(False))
        with self._database.write_transaction() as connection:
            erased = connection.execute(sa.delete(run_secrets).where(run_secrets.c.experiment_id.not_in(still_open)))
        return bool(erased.rowcount)

    def set_registry(
        self, owner: SecretOwner, host: str, credential: RegistryCredential, user: str, moment: datetime
    ) -> RegistryEntry:
        """Store the credential of a registry in place of an earlier one; see `set_secret`."""
        with self._database.write_transaction() as connection:
            sealed = self._seals.seal_text(_place_registry(owner, host), credential.password)
            connection.execute(sa.delete(registries).where(_is_registry(owner, host)))
            row = {"owner_kind": owner.kind.value, "owner": owner.name, "host": host, "login": credential.login}
            connection.execute(sa.insert(registries).values(**row, value=sealed, set_at=moment, set_by=user))
        return RegistryEntry(host, credential.login, owner, moment, user, None)

    def remove_registry(self, owner: SecretOwner, host: str) -> None:
        """Remove the credential of a registry.

        Raises:
            NotFound: there is none.
        """
        with self._database.write_transaction() as connection:
            removed = connection.execute(sa.delete(registries).where(_is_registry(owner, host))).rowcount
        if not removed:
            raise NotFound(
                f"{owner.describe()} has no credential for {host}", "`riseml registry list` shows all of yours"
            )

    def list_registries(self, owners: Sequence[SecretOwner]) -> list[RegistryEntry]:
        """Return the registries for which these owners have credentials, without the passwords, by host."""
        query = sa.select(registries).where(_belongs(registries, owners))
        with self._database.read_transaction() as connection:
            rows = connection.execute(query.order_by(registries.c.host, registries.c.owner_kind)).mappings().all()
        return [
            RegistryEntry(row["host"], row["login"], _read_owner(row), row["set_at"], row["set_by"], row["used_at"])
            for row in rows
        ]

    def list_registry_hosts(self) -> frozenset[str]:
        """Return the registries for which anybody has a credential."""
        with self._database.read_transaction() as connection:
            return frozenset(connection.execute(sa.select(registries.c.host).distinct()).scalars())

    def use_registry(self, owners: Sequence[SecretOwner], host: str, moment: datetime) -> RegistryCredential | None:
        """Return the credential for a registry of the first owner that has one, and note its use; None: none has.

        Raises:
            EngineError: the password does not open.
        """
        for owner in owners:
            query = sa.select(registries.c.login, registries.c.value).where(_is_registry(owner, host))
            with self._database.read_transaction() as connection:
                row = connection.execute(query).one_or_none()
            if row is not None:
                password = self._seals.open_text(_place_registry(owner, host), row.value)
                with self._database.write_transaction() as connection:
                    connection.execute(registries.update().where(_is_registry(owner, host)).values(used_at=moment))
                return RegistryCredential(row.login, password)
        return None

    def reseal(self, reseal: ResealText) -> None:
        """Replace every sealed value in one transaction."""
        with self._database.write_transaction() as connection:
            for row in connection.execute(sa.select(secrets)).mappings().all():
                owner = _read_owner(row)
                value = reseal(_place_secret(owner, row["name"]), row["value"])
                connection.execute(secrets.update().where(_is_secret(owner, row["name"])).values(value=value))
            for row in connection.execute(sa.select(registries)).mappings().all():
                owner = _read_owner(row)
                value = reseal(_place_registry(owner, row["host"]), row["value"])
                connection.execute(registries.update().where(_is_registry(owner, row["host"])).values(value=value))
            for row in connection.execute(sa.select(run_secrets)).mappings().all():
                value = reseal(_place_run(row["experiment_id"]), row["value"])
                connection.execute(run_secrets.update().where(run_secrets.c.id == row["id"]).values(value=value))

    def _open_first(
        self, connection: sa.Connection, owners: Sequence[SecretOwner], name: str
    ) -> tuple[SecretOwner, str]:
        for owner in owners:
            sealed = connection.execute(sa.select(secrets.c.value).where(_is_secret(owner, name))).scalar()
            if sealed is not None:
                return owner, self._seals.open_text(_place_secret(owner, name), sealed)
        if self._is_team and [owner.kind for owner in owners] == [OwnerKind.PROJECT]:
            project = owners[0].name
            raise NotFound(
                f"the secret {name} of the project {project} is not set, and a key of the project uses no other",
                f"a maintainer sets it: `riseml secret set {name} --project {project}`",
            )
        raise NotFound(
            f"the secret {name} is not set", f"`riseml secret set {name}` sets yours; `--project` that of the project"
        )

    def _select_values(self, connection: sa.Connection, experiment: int) -> Iterable[str]:
        query = sa.select(run_secrets.c.value).where(run_secrets.c.experiment_id == experiment)
        stored = connection.execute(query).scalars().all()
        return [self._seals.open_text(_place_run(experiment), value) for value in stored]


def _place_secret(owner: SecretOwner, name: str) -> Place:
    return "secret", owner.kind.value, owner.name, name


def _place_registry(owner: SecretOwner, host: str) -> Place:
    return "registry", owner.kind.value, owner.name, host


def _place_run(experiment: int) -> Place:
    return "run", "experiment", "", str(experiment)


def _is_secret(owner: SecretOwner, name: str) -> sa.ColumnElement[bool]:
    return sa.and_(_belongs(secrets, [owner]), secrets.c.name == name)


def _is_registry(owner: SecretOwner, host: str) -> sa.ColumnElement[bool]:
    return sa.and_(_belongs(registries, [owner]), registries.c.host == host)


def _belongs(table: sa.Table, owners: Sequence[SecretOwner]) -> sa.ColumnElement[bool]:
    conditions = [sa.and_(table.c.owner_kind == owner.kind.value, table.c.owner == owner.name) for owner in owners]
    return sa.or_(sa.false(), *conditions)


def _read_owner(row: sa.RowMapping) -> SecretOwner:
    return SecretOwner(OwnerKind(row["owner_kind"]), row["owner"])
