"""The identity of RISEML_HOME. Refuse to create a new store where one existed.

A new store would number experiments from 1 again, mix their logs and outputs with those of older experiments, and miss
the containers that still run.
"""

from __future__ import annotations

import os
from pathlib import Path

from riseml.base.errors import StoreError
from riseml.base.home_location import find_location
from riseml.base.settings import Settings
from riseml.store.home_record import OwnHome


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


def find_own_home(settings: Settings) -> OwnHome:
    """Return the home of these settings, as its store compares it.

    Raises:
        OSError: it is not there, or cannot be looked at.
    """
    return OwnHome(find_location(settings.home), read_identity(settings.identity), settings.local is not None)


def record_server(settings: Settings, server: str) -> None:
    """Remember the server of the first store that a home uses: another store is refused from then on."""
    if settings.identity.exists():
        return
    fresh = settings.identity.with_suffix(".new")
    _write_identity(fresh, server)
    fresh.replace(settings.identity)


def read_identity(path: Path) -> str | None:
    """Return the id of a home's server; None when no server has used the home."""
    try:
        return path.read_text("ascii", "replace").strip()
    except FileNotFoundError:
        return None


def _write_identity(path: Path, text: str) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as file:
        file.write(f"{text}\n")
