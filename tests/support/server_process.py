"""Servers as processes: forked from a process that has imported riseml already, or started as new processes.

Importing the server takes three quarters of a second of processor time, and the tests start hundreds of servers. The
standard library's fork server imports it once for each worker of pytest, and also what a new server imports on its way.
Making the tables of a new store takes as long as the rest of a start, so a forked server finds an empty store with all
tables. What `python -m riseml.server` does from `main` on is the same; tests/real/e2e starts its servers as users do,
and theirs make their tables.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Protocol

from riseml import faultpoints
from tests.support.stores import make_new_store

SERVER = ("-m", "riseml.server")
"""The arguments of Python that start a server."""

_IMPORTED_ON_THE_WAY = (
    "anyio._backends._asyncio",
    "ctypes.util",
    "uvicorn.lifespan.off",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto",
)
"""What every new server imports after its start; the fork server passes over a module that is not there."""

_READING = threading.Lock()
"""Held by the thread that reads exit codes: each can be read once, and a start reads those of all processes."""


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
        environ: all environment variables of the process. With a PYTHONPATH of its own it is not forked either.
        log: the file.
    """
    imports_the_same = environ.get("PYTHONPATH") == os.environ.get("PYTHONPATH")
    if arguments == SERVER and imports_the_same and not _measures_coverage():
        _provide_store(environ)
        return _ForkedServer(environ, log)
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


def _measures_coverage() -> bool:
    """Return True when coverage counts the lines of started processes, which it cannot in forked ones."""
    return any(name.startswith("COV") for name in os.environ)


class _ForkedServer:
    """A server that the fork server of this process has forked."""

    def __init__(self, environ: Mapping[str, str], log: Path) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["riseml.server.process", __name__, *_IMPORTED_ON_THE_WAY])
        self._process: ForkServerProcess = context.Process(target=_serve, args=(dict(environ), log), daemon=True)
        with _READING:
            self._process.start()
        assert self._process.pid is not None, "it was started"
        self.pid = self._process.pid

    def poll(self) -> int | None:
        with _READING:
            return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        wait([self._process.sentinel], timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired([*SERVER], timeout or 0.0)
        return code

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)


def _serve(environ: dict[str, str], log: Path) -> None:
    """Become `python -m riseml.server` with these variables, in the forked process."""
    os.environ.clear()
    os.environ.update(environ)
    os.chdir("/")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.close(output)
    sys.argv = ["riseml.server"]
    runpy.run_module("riseml.server", run_name="__main__", alter_sys=True)
