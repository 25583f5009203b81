"""Secrets in the store: sealed, bound to their place, with the values that open runs use."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from riseml.base.errors import EngineError, NotFound
from riseml.base.roles import Role, Scope
from riseml.base.secrets import RegistryCredential
from riseml.model import Caller, Owner
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.schema import experiments as experiment_table
from riseml.store.schema import registries, run_secrets, secrets
from riseml.store.sealed_variables import ResealText, VariableSeals
from riseml.store.secret_store import OwnerKind, SecretOwner, SecretStore
from tests.unit.store.submissions import NOW, submit

PAUL = SecretOwner(OwnerKind.USER, "paul")
TEAM = SecretOwner(OwnerKind.PROJECT, "toaster")
VALUE = "hf_s3cret-value"


@pytest.fixture
def seals(tmp_path: Path) -> VariableSeals:
    return VariableSeals(tmp_path / "variables.key", "5e17e4")


@pytest.fixture
def kept(database: Database, seals: VariableSeals) -> SecretStore:
    return SecretStore(database, seals)


def test_a_secret_of_the_user_comes_before_that_of_the_project(kept: SecretStore, experiments: ExperimentStore) -> None:
    run = submit(experiments)
    kept.set_secret(TEAM, "hf", "of the project", "ann", NOW)
    assert kept.take_secrets([PAUL, TEAM], ["hf"], run.id, NOW) == {"hf": "of the project"}
    kept.set_secret(PAUL, "hf", "earlier", "paul", NOW)
    kept.set_secret(PAUL, "hf", VALUE, "paul", NOW)
    assert kept.take_secrets([PAUL, TEAM], ["hf", "hf"], run.id, NOW) == {"hf": VALUE}
    listed = {entry.owner: (entry.name, entry.set_by, entry.used_at) for entry in kept.list_secrets([PAUL, TEAM])}
    assert listed == {PAUL: ("hf", "paul", NOW), TEAM: ("hf", "ann", NOW)}
    assert kept.list_owners(Caller(Owner("paul", 1, 1), Role.MEMBER, Scope.ADMIN)) == [PAUL, TEAM]
    assert kept.peek_secrets([PAUL], ["hf"]) == {"hf": VALUE}
    kept.remove_secret(PAUL, "hf")
    for call in (lambda: kept.remove_secret(PAUL, "hf"), lambda: kept.take_secrets([PAUL], ["hf"], run.id, NOW)):
        with pytest.raises(NotFound, match="hf"):
            call()


def test_the_values_of_a_run_stay_known_until_it_is_closed(
    kept: SecretStore, experiments: ExperimentStore, database: Database
) -> None:
    run, other = submit(experiments), submit(experiments)
    kept.set_secret(PAUL, "hf", "first value", "paul", NOW)
    for _ in range(2):
        kept.take_secrets([PAUL], ["hf"], run.id, NOW)
    kept.set_secret(PAUL, "hf", "second value", "paul", NOW)
    kept.take_secrets([PAUL], ["hf"], run.id, NOW)
    kept.remove_secret(PAUL, "hf")
    assert kept.read_run_values(run.id) == ("first value", "second value")
    assert kept.read_run_values(other.id) == ()
    assert not kept.erase_closed()
    with database.write_transaction() as connection:
        connection.execute(experiment_table.update().where(experiment_table.c.id == run.id).values(closed=True))
    assert kept.erase_closed()
    assert kept.read_run_values(run.id) == ()


def test_no_value_is_in_the_store_or_opens_in_another_place(
    kept: SecretStore, experiments: ExperimentStore, database: Database
) -> None:
    run = submit(experiments)
    for owner in (PAUL, TEAM):
        kept.set_secret(owner, "hf", VALUE, "paul", NOW)
        kept.set_registry(owner, "registry.lab", RegistryCredential("paul", VALUE), "paul", NOW)
    kept.set_secret(PAUL, "other", "another value", "paul", NOW)
    kept.take_secrets([PAUL], ["hf"], run.id, NOW)
    with database.write_transaction() as connection:
        sealed = {
            value
            for table in (secrets, registries, run_secrets)
            for value in connection.execute(sa.select(table.c.value)).scalars()
        }
        assert len(sealed) == 6
        assert not any(VALUE in value or not value.startswith("sealed:2:") for value in sealed)
        moved = sa.select(secrets.c.value).where(secrets.c.owner == "toaster").scalar_subquery()
        connection.execute(secrets.update().where(secrets.c.owner == "paul").values(value=moved))
        connection.execute(registries.update().where(registries.c.owner == "paul").values(value=moved))
    for name in ("hf", "other"):
        with pytest.raises(EngineError, match="cannot be read"):
            kept.take_secrets([PAUL], [name], run.id, NOW)
    with pytest.raises(EngineError, match="cannot be read"):
        kept.use_registry([PAUL], "registry.lab", NOW)


def test_a_credential_of_a_registry_is_that_of_the_first_owner(kept: SecretStore) -> None:
    assert kept.use_registry([PAUL, TEAM], "registry.lab", NOW) is None
    kept.set_registry(TEAM, "registry.lab", RegistryCredential("lab", "team"), "ann", NOW)
    kept.set_registry(PAUL, "registry.lab", RegistryCredential("me", VALUE), "paul", NOW)
    assert kept.use_registry([PAUL, TEAM], "registry.lab", NOW) == RegistryCredential("me", VALUE)
    assert kept.use_registry([PAUL], "docker.io", NOW) is None
    shown = [(entry.host, entry.login, entry.used_at) for entry in kept.list_registries([PAUL, TEAM])]
    assert shown == [("registry.lab", "lab", None), ("registry.lab", "me", NOW)]
    kept.remove_registry(PAUL, "registry.lab")
    assert kept.use_registry([PAUL, TEAM], "registry.lab", NOW) == RegistryCredential("lab", "team")
    with pytest.raises(NotFound, match=r"no credential for registry\.lab"):
        kept.remove_registry(PAUL, "registry.lab")


@pytest.mark.parametrize("moment", ["before", "after", "never"])
def test_every_value_opens_whenever_a_rotation_of_the_key_ends(
    moment: str, kept: SecretStore, seals: VariableSeals, experiments: ExperimentStore, tmp_path: Path
) -> None:
    run = submit(experiments)
    kept.set_secret(PAUL, "hf", VALUE, "paul", NOW)
    kept.set_registry(PAUL, "registry.lab", RegistryCredential("me", VALUE), "paul", NOW)
    kept.take_secrets([PAUL], ["hf"], run.id, NOW)
    former = seals.file.read_bytes()

    def reseal_and_die(reseal: ResealText) -> None:
        if moment == "after":
            kept.reseal(reseal)
        raise KeyboardInterrupt

    if moment != "never":
        with pytest.raises(KeyboardInterrupt):
            seals.rotate(experiments.reseal_variables, reseal_and_die)
        assert kept.take_secrets([PAUL], ["hf"], run.id, NOW) == {"hf": VALUE}
    seals.rotate(experiments.reseal_variables, kept.reseal)
    assert kept.take_secrets([PAUL], ["hf"], run.id, NOW) == {"hf": VALUE}
    assert kept.use_registry([PAUL], "registry.lab", NOW) == RegistryCredential("me", VALUE)
    assert kept.read_run_values(run.id) == (VALUE,)
    assert len(seals.file.read_bytes()) == len(former)
    seals.file.write_bytes(former)
    with pytest.raises(EngineError, match="cannot be read"):
        kept.take_secrets([PAUL], ["hf"], run.id, NOW)


@pytest.mark.parametrize(
    ("project", "sees"),
    [
        (None, [PAUL, TEAM]),  # of the two projects in which paul is, one lets paul only look
        ("toaster", [TEAM]),
        ("vision", []),
    ],
)
def test_a_team_lists_the_secrets_of_the_caller_and_of_the_projects_that_use_them(
    project: str | None, sees: list[SecretOwner], database: Database, seals: VariableSeals
) -> None:
    kept = SecretStore(database, seals, is_team=True)
    for owner in (PAUL, TEAM, SecretOwner(OwnerKind.PROJECT, "vision"), SecretOwner(OwnerKind.USER, "ann")):
        kept.set_secret(owner, "hf", VALUE, "ann", NOW)
    projects = (("toaster", Role.MEMBER), ("vision", Role.VIEWER))
    assert kept.list_owners(Caller(Owner("paul", 1, 1), Role.MEMBER, Scope.ADMIN, projects, project)) == sees


@pytest.mark.parametrize(("team_project", "uses"), [(None, [PAUL]), ("toaster", [TEAM, PAUL])])
def test_the_name_of_a_project_alone_gives_a_run_of_a_team_nothing(
    team_project: str | None, uses: list[SecretOwner], database: Database, seals: VariableSeals
) -> None:
    kept = SecretStore(database, seals, is_team=True)
    assert kept.list_new_owners("paul", "toaster", team_project) == uses
