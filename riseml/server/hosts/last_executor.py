"""The executor that ran jobs here last, `docker`, `process` or `slurm`: waiting experiments were accepted for it."""

from __future__ import annotations

import os
from pathlib import Path

from riseml.base.errors import StoreError, advise_on_write

_FILE = "server.executor"  # in RISEML_HOME


def read_last_executor(home: Path) -> str | None:
    """Return the executor that the server of this home used last; None when only an older version has run here."""
    try:
        return (home / _FILE).read_text("utf-8", "replace").strip()
    except OSError:
        return None


def record_executor(home: Path, name: str) -> None:
    """Remember the executor, before the first experiment is accepted for it.

    Raises:
        StoreError: the home cannot be written.
    """
    if read_last_executor(home) == name:
        return
    fresh = home / f"{_FILE}.new"
    try:
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as file:
            file.write(f"{name}\n")
        fresh.replace(home / _FILE)
    except OSError as error:
        raise StoreError(f"{home} cannot be written: {error.strerror}", advise_on_write(error)) from error
