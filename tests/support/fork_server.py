"""Servers and commands as processes forked from one that has imported riseml already.

Importing the server takes three quarters of a second of processor time, importing a command a fifth, and the tests
start hundreds of both. The standard library's fork server imports `warm_modules` once for each worker of pytest.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from multiprocessing import reduction
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerProcess
from typing import Any

_IMPORTED = ("tests.support.warm_modules", "tests.support.server_process", "tests.support.forked_command")

_READ_AT_START = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_")
"""Beginnings of the variables that Python and the C library read when a process starts."""

_READING = threading.Lock()
"""Held by the thread that reads exit codes: each can be read once, and a start reads those of all processes."""


def starts_the_same(environ: Mapping[str, str]) -> bool:
    """Return True when a forked process with these variables is like a started one, and no coverage is measured."""
    read = {name for name in (*environ, *os.environ) if name.startswith(_READ_AT_START)}
    measures_coverage = any(name.startswith("COV") for name in os.environ)
    return not measures_coverage and all(environ.get(name) == os.environ.get(name) for name in read)


class Descriptor:
    """An open file of this process that a forked process gets: one of the arguments of its function.

    Args:
        number: in this process, and after the way in the forked one.
    """

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> tuple[Callable[..., Descriptor], tuple[Any]]:
        return _receive, (reduction.DupFd(self.number),)


def _receive(sent: Any) -> Descriptor:
    return Descriptor(sent.detach())


class ForkedProcess:
    """A process that the fork server of this process has forked.

    Args:
        run: the function that it calls, of a module that the fork server has imported.
        arguments: of the function; pickled.
    """

    def __init__(self, run: Callable[..., None], *arguments: object) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(_IMPORTED))
        self._process: ForkServerProcess = context.Process(target=run, args=arguments, daemon=True)
        with _READING:
            self._process.start()
        assert self._process.pid is not None, "it was started"
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Return its exit code as `subprocess.Popen` does, or None while it runs."""
        with _READING:
            return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return its exit code.

        Raises:
            subprocess.TimeoutExpired: it has not ended within so many seconds.
        """
        wait([self._process.sentinel], timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(["a forked process"], timeout or 0.0)
        return code

    def send_signal(self, sig: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, sig)


def take_place(environ: Mapping[str, str], where: str) -> None:
    """Give this forked process the environment, the working directory and the Ctrl-C of a started one."""
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()
    os.chdir(where)
    signal.signal(signal.SIGINT, signal.default_int_handler)
