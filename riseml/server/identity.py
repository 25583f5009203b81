"""The identity of RISEML_HOME. Refuse to create a new store where one existed.

A new store would number experiments from 1 again, mix their logs and outputs with those of older experiments, and miss
the containers that still run.
"""

from __future__ import annotations

import os
from pathlib import Path

from riseml.errors import StoreError
from riseml.settings import Settings


def check_store_is_there(settings: Settings) -> None:
    """Refuse to create a new store file where this home had one.

    Raises:
        StoreError: the store is gone or empty.
    """
    path = settings.home / "riseml.db"
    if settings.store is None and settings.identity.exists() and not (path.exists() and path.stat().st_size):
        raise StoreError(
            f"the store {path} is gone or empty, and this home had one",
            f"restore it from a backup, or use another RISEML_HOME; to start afresh, remove {settings.identity}",
        )


def check_server(settings: Settings, server: str) -> None:
    """Refuse a store that belongs to another home. The first store that a home uses becomes its own.

    Raises:
        StoreError: the store belongs to another server.
    """
    if settings.identity.exists():
        known = settings.identity.read_text().strip()
        if known != server:
            raise StoreError(
                f"the store is that of server {server[:8]}, and {settings.home} is the home of server {known[:8]}",
                "restore the store, or set RISEML_STORE or RISEML_HOME right; to start afresh, remove "
                f"{settings.identity}",
            )
        return
    fresh = settings.identity.with_suffix(".new")
    _write_identity(fresh, server)
    fresh.replace(settings.identity)


def _write_identity(path: Path, text: str) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as file:
        file.write(f"{text}\n")
