"""Which server this home is. A home whose store was lost must not begin anew: its numbers would start at 1 again, meet
the logs and outputs of other experiments, and leave running containers to nobody."""

from __future__ import annotations

import os
from pathlib import Path

from riseml.errors import StoreError
from riseml.settings import Settings


def check_store_is_there(settings: Settings) -> None:
    """Refuse to make a new file where this home had a store.

    Raises:
        StoreError: it is gone or empty.
    """
    path = settings.home / "riseml.db"
    if settings.store is None and settings.identity.exists() and not (path.exists() and path.stat().st_size):
        raise StoreError(
            f"the store {path} is gone or empty, and this home had one",
            f"restore it from a backup, or use another RISEML_HOME; to begin anew here, remove {settings.identity}",
        )


def check_server(settings: Settings, server: str) -> None:
    """Refuse a store that is not this home's; the first one becomes it.

    Raises:
        StoreError: it is another server's.
    """
    if settings.identity.exists():
        known = settings.identity.read_text().strip()
        if known != server:
            raise StoreError(
                f"the store is that of server {server[:8]}, and {settings.home} is the home of server {known[:8]}",
                "restore the store, or set RISEML_STORE or RISEML_HOME right; to begin anew here, remove "
                f"{settings.identity}",
            )
        return
    fresh = settings.identity.with_suffix(".new")
    _write(fresh, server)
    fresh.replace(settings.identity)


def _write(path: Path, text: str) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as file:
        file.write(f"{text}\n")
