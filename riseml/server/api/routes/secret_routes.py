"""The routes of secrets and of the credentials of registries. No answer has a value."""

from __future__ import annotations

import logging
from typing import Annotated

from fastapi import APIRouter, Body, Path, Query

from riseml import wire
from riseml.base.secrets import RegistryCredential, check_registry_host, check_secret_name, check_secret_value
from riseml.server.api.callers import CallerOf
from riseml.server.api.secret_owners import check_key_file, choose_owner
from riseml.server.api.submissions.submit import check_text
from riseml.server.api.views.record_views import show_time
from riseml.server.clock import now
from riseml.server.log_line import LogLine, write_line
from riseml.server.services import Services
from riseml.store.secret_store import RegistryEntry, SecretEntry, SecretOwner

SecretName = Annotated[str, Path(max_length=64, description="the name of a secret")]
RegistryHost = Annotated[str, Path(max_length=255, description="the host of a registry, with its port")]
Project = Annotated[
    str | None, Query(min_length=1, max_length=128, description="the project it belongs to; without it, the user")
]

log = logging.getLogger(__name__)


def add_secret_routes(router: APIRouter, services: Services) -> None:
    """Add /secrets and /registries."""
    stores = services.stores

    @router.get("/secrets")
    def list_secrets(caller: CallerOf) -> wire.SecretList:
        owners = stores.secrets.list_owners(caller)
        return {"secrets": [_show_secret(entry) for entry in stores.secrets.list_secrets(owners)]}

    @router.put("/secrets/{name}")
    def set_secret(
        name: SecretName, request: Annotated[wire.SecretValue, Body()], caller: CallerOf, project: Project = None
    ) -> wire.SecretView:
        owner = choose_owner(caller, project, services)
        check_key_file(services)
        value = check_secret_value(request["value"])
        entry = stores.secrets.set_secret(owner, check_secret_name(name), value, caller.user, now())
        stores.experiments.note_erasing()
        services.loops.wake.set()
        write_line(log, LogLine(f"the secret {name} of {owner.describe()} was set"))
        return _show_secret(entry)

    @router.delete("/secrets/{name}")
    def remove_secret(name: SecretName, caller: CallerOf, project: Project = None) -> wire.RemovedSecret:
        owner = choose_owner(caller, project, services)
        stores.secrets.remove_secret(owner, check_secret_name(name))
        stores.experiments.note_erasing()
        services.loops.wake.set()
        write_line(log, LogLine(f"the secret {name} of {owner.describe()} was removed"))
        return _show_removed(name, owner)

    @router.get("/registries")
    def list_registries(caller: CallerOf) -> wire.RegistryList:
        owners = stores.secrets.list_owners(caller)
        return {"registries": [_show_registry(entry) for entry in stores.secrets.list_registries(owners)]}

    @router.put("/registries/{host}")
    def log_in(
        host: RegistryHost, request: Annotated[wire.RegistryLogin, Body()], caller: CallerOf, project: Project = None
    ) -> wire.RegistryView:
        check_text(request["login"])
        owner = choose_owner(caller, project, services)
        check_key_file(services)
        credential = RegistryCredential(request["login"], check_secret_value(request["password"]))
        host = check_registry_host(host)
        entry = stores.secrets.set_registry(owner, host, credential, caller.user, now())
        stores.experiments.note_erasing()
        services.loops.wake.set()
        write_line(log, LogLine(f"the credential of {owner.describe()} for {host} was set"))
        return _show_registry(entry)

    @router.delete("/registries/{host}")
    def log_out(host: RegistryHost, caller: CallerOf, project: Project = None) -> wire.RemovedSecret:
        owner = choose_owner(caller, project, services)
        host = check_registry_host(host)
        stores.secrets.remove_registry(owner, host)
        stores.experiments.note_erasing()
        services.loops.wake.set()
        write_line(log, LogLine(f"the credential of {owner.describe()} for {host} was removed"))
        return _show_removed(host, owner)


def _show_secret(entry: SecretEntry) -> wire.SecretView:
    return {
        "name": entry.name,
        "owner": entry.owner.name,
        "owner_kind": entry.owner.kind.value,
        "set_at": show_time(entry.set_at) or "",
        "set_by": entry.set_by,
        "used_at": show_time(entry.used_at),
    }


def _show_registry(entry: RegistryEntry) -> wire.RegistryView:
    return {
        "host": entry.host,
        "login": entry.login,
        "owner": entry.owner.name,
        "owner_kind": entry.owner.kind.value,
        "set_at": show_time(entry.set_at) or "",
        "set_by": entry.set_by,
        "used_at": show_time(entry.used_at),
    }


def _show_removed(name: str, owner: SecretOwner) -> wire.RemovedSecret:
    return {"name": name, "owner": owner.name, "owner_kind": owner.kind.value}
