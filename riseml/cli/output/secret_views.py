"""The lists of `riseml secret` and `riseml registry`. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from riseml.cli.output.style import Style
from riseml.cli.output.tables import Column, build_table

if TYPE_CHECKING:
    from riseml import wire

_NEVER = "never"
_SECRET_COLUMNS = (Column("NAME"), Column("OWNER"), Column("SET"), Column("LAST USED"))
_REGISTRY_COLUMNS = (Column("HOST"), Column("USER"), Column("OWNER"), Column("SET"), Column("LAST USED"))


def list_secret_rows(secrets: Sequence[wire.SecretView], style: Style) -> list[str]:
    """Return the lines of a list of secrets."""
    if not secrets:
        return ["There are no secrets. `riseml secret set NAME` sets one."]
    rows = [
        [row["name"], _name_owner(row["owner"], row["owner_kind"]), row["set_at"], row["used_at"] or _NEVER]
        for row in secrets
    ]
    return build_table(_SECRET_COLUMNS, rows, style)


def list_registry_rows(registries: Sequence[wire.RegistryView], style: Style) -> list[str]:
    """Return the lines of a list of registries."""
    if not registries:
        return ["There are no credentials of registries. `riseml registry login HOST -u USER` keeps one."]
    rows = [
        [
            row["host"],
            row["login"],
            _name_owner(row["owner"], row["owner_kind"]),
            row["set_at"],
            row["used_at"] or _NEVER,
        ]
        for row in registries
    ]
    return build_table(_REGISTRY_COLUMNS, rows, style)


def _name_owner(owner: str, kind: str) -> str:
    return f"project {owner}" if kind == "project" else owner
