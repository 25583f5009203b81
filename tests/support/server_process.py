"""Servers as processes: forked from a process that has imported riseml already, or started as new processes.

Making the tables of a new store takes as long as the rest of a start, so a forked server finds an empty store with all
tables. What `python -m riseml.server` does from `main` on is the same; tests/real/e2e starts its servers as users do,
and theirs make their tables.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from riseml.base import faultpoints
from tests.support.fork_server import ForkedProcess, starts_the_same, take_place
from tests.support.stores import make_new_store

SERVER = ("-m", "riseml.server")
"""The arguments of Python that start a server."""


class ServerProcess(Protocol):
    """The part of `subprocess.Popen` that tests use."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int) -> None: ...


def start_server(arguments: tuple[str, ...], environ: Mapping[str, str], log: Path) -> ServerProcess:
    """Start a server in `/` whose output goes to the end of the file `log`.

    Args:
        arguments: `SERVER`, or those that start a server with changes, which is not forked.
        environ: all environment variables of the process; some of them keep it from being forked, too
            (`starts_the_same`).
        log: the file.
    """
    if arguments == SERVER and starts_the_same(environ):
        _provide_store(environ)
        return ForkedProcess(_serve, dict(environ), log)
    with log.open("ab") as output:
        return subprocess.Popen([sys.executable, *arguments], env=environ, stdout=output, stderr=output, cwd="/")


def _provide_store(environ: Mapping[str, str]) -> None:
    """Put an empty store into a new home, unless the server uses another store, or is to die at some step."""
    home = Path(environ["RISEML_HOME"])
    store = home / "riseml.db"
    is_new = not store.exists() and not (home / "server.id").exists()
    if is_new and not environ.get("RISEML_STORE") and not environ.get(faultpoints.VARIABLE):
        with open(os.open(store, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(make_new_store())


def _serve(environ: dict[str, str], log: Path) -> None:
    """Become `python -m riseml.server` with these variables, in the forked process."""
    take_place(environ, "/")
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.close(output)
    sys.argv = ["riseml.server"]
    runpy.run_module("riseml.server", run_name="__main__", alter_sys=True)
