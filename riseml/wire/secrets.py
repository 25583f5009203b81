"""Secrets and the credentials of registries: what is shown of them, and what sets them."""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import MaxLen, MinLen
from typing_extensions import TypedDict

from riseml.base.secrets import LONGEST_SECRET

OwnerKindName = Literal["user", "project"]
Login = Annotated[str, MinLen(1), MaxLen(255)]


class SecretView(TypedDict):
    """A secret, without its value."""

    name: str
    owner: str  # name of the user or project
    owner_kind: OwnerKindName
    set_at: str  # RFC 3339
    set_by: str  # user
    used_at: str | None  # when a job last started with it; null: none has


class SecretList(TypedDict):
    """The secrets that the user may name in a riseml.yml."""

    secrets: list[SecretView]  # by name


class SecretValue(TypedDict):
    """The value of a secret. No answer has it."""

    value: Annotated[str, MinLen(1), MaxLen(LONGEST_SECRET)]


class RemovedSecret(TypedDict):
    """A secret, or the credential of a registry, that is gone."""

    name: str  # of the secret, or the host of the registry
    owner: str
    owner_kind: OwnerKindName


class RegistryView(TypedDict):
    """The credential of a registry, without its password."""

    host: str  # with its port: `registry.lab:5000`
    login: str  # name of the user at the registry
    owner: str  # name of the user or project
    owner_kind: OwnerKindName
    set_at: str  # RFC 3339
    set_by: str  # user
    used_at: str | None  # when an image was last requested with it; null: none was


class RegistryList(TypedDict):
    """The registries from which the user's jobs pull with a credential."""

    registries: list[RegistryView]  # by host


class RegistryLogin(TypedDict):
    """The credential of a registry. No answer has the password."""

    login: Login
    password: Annotated[str, MinLen(1), MaxLen(LONGEST_SECRET)]
