"""Start the user's own server as a process, and read its error when it does not start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import field
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from riseml.base.errors import Refused, RisemlError, Unreachable
from riseml.base.folders import check_home, make_private
from riseml.base.records import dataclass

if TYPE_CHECKING:
    from riseml import wire
    from riseml.base.settings import Settings

ANSWER_DEADLINE = 60.0
"""Seconds that a server may take to start, or to end. A server that exits while it starts is reported at once."""

_LAST_WORDS = 8192  # bytes at the end of the log that are searched for the error


class ServerProcess(Protocol):
    """A server process that this command started."""

    @property
    def pid(self) -> int:
        """The id of the process."""

    def terminate(self) -> None:
        """End the process with SIGTERM, if it still runs."""

    def wait(self, timeout: float) -> int:
        """Return the exit code; raise `subprocess.TimeoutExpired` after `timeout` seconds."""


@dataclass(frozen=True, slots=True)
class ServerStarter:
    """The way to start a server, and the time that a command waits for it."""

    spawn: Callable[[Settings, Sequence[str]], ServerProcess]
    command: Sequence[str] = (sys.executable, "-m", "riseml.server")
    deadline: float = ANSWER_DEADLINE  # seconds
    clock: Callable[[], float] = time.monotonic  # seconds
    wait: Callable[[float], object] = field(default_factory=lambda: threading.Event().wait)  # takes seconds
    most_killed: int | None = 5  # servers that were killed while they started, and are started again; None: all of them

    def may_repeat(self, killed: int) -> bool:
        """Return True when another server may be started after so many that were killed."""
        return self.most_killed is None or killed < self.most_killed


def spawn_server(settings: Settings, command: Sequence[str]) -> ServerProcess:
    """Start a process that outlives this command: in its own session, without a terminal, its output in the log.

    Raises:
        Refused: the home cannot be written, or another user controls it.
    """
    try:
        settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        check_home(settings.home)  # check again: another user may have created the home since the command started
        if settings.local is not None:
            make_private(settings.local)
        log = os.open(settings.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        no_folder = settings.home.exists() and not settings.home.is_dir()
        why = "it is not a folder" if no_folder else error.strerror
        raise Refused(
            f"the riseml server cannot use {settings.home}: {why}",
            "make it writable, or name another folder in RISEML_HOME",
        ) from None
    try:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,
            env={**os.environ, **_make_environment(settings)},
        )
    finally:
        os.close(log)
    # A program that uses the library may outlive the server, which would stay a zombie until its exit code is read.
    threading.Thread(target=process.wait, name="end of the server", daemon=True).start()
    return process


def become_server(settings: Settings, *, standby: bool) -> NoReturn:
    """Run the server in the place of this command, with its terminal; `standby`: after the one that runs now."""
    environment = {**os.environ, **_make_environment(settings)}
    os.chdir("/")
    argument = "--standby" if standby else "--stay"
    os.execve(sys.executable, [sys.executable, "-m", "riseml.server", argument], environment)


def run_executor_check(settings: Settings) -> None:
    """Check that a server with these settings could run jobs now, without starting one. It takes about half a second.

    Raises:
        RisemlError: the server could not run jobs.
    """
    _run_program(settings, "riseml.server.executor_check", f"the {settings.executor} executor could not be checked")


def run_self_check(settings: Settings) -> list[wire.SelfFinding]:
    """Return whether this machine has what riseml needs, without a server.

    Raises:
        RisemlError: the check itself failed.
    """
    findings: list[wire.SelfFinding] = json.loads(
        _run_program(settings, "riseml.server.self_check", "this machine could not be checked")
    )
    return findings


def run_home_program(settings: Settings, *words: str) -> Any:
    """Do something with the whole home, without a server, and return what `riseml.server.home_program` says.

    Raises:
        RisemlError: it was not done.
    """
    return json.loads(_run_program(settings, "riseml.server.home_program", "it was not done", *words))


def _run_program(settings: Settings, module: str, failure: str, *words: str) -> str:
    """Run a program of the server's and return its output.

    Raises:
        RisemlError: as the program says in its first two lines, or with the message `failure`.
    """
    process = subprocess.run(
        [sys.executable, "-m", module, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        cwd="/",
        check=False,
        env={**os.environ, **_make_environment(settings)},
    )
    if process.returncode:
        message, _, hint = process.stdout.partition("\n")
        lines = [line for line in process.stderr.splitlines() if line.strip()]
        error = RisemlError(message or ": ".join([failure, *lines[-1:]]), hint.strip() or None)
        error.exit_code = process.returncode if message else Unreachable.exit_code
        raise error
    return process.stdout


def _make_environment(settings: Settings) -> dict[str, str]:
    """Return the server's variables. Paths are absolute, because the server runs in another folder."""
    folders = {"RISEML_HOME": settings.home, "RISEML_OUTPUT": settings.output, "RISEML_DATA": settings.data}
    variables = {name: str(path) for name, path in folders.items()}
    if settings.engine_certificates is not None:
        variables["DOCKER_CERT_PATH"] = str(settings.engine_certificates)
    if settings.local is not None:
        variables["RISEML_LOCAL"] = str(settings.local)
    return variables | ({"RISEML_EXECUTOR": settings.executor} if settings.executor else {})


def measure_log(log: Path) -> int:
    """Return the bytes of the server's log; 0 when it cannot be read."""
    try:
        return log.stat().st_size
    except OSError:  # `spawn_server` reports what is wrong when it opens the log
        return 0


def read_start_error(log: Path, start: int) -> str:
    """Return the error that the server wrote after byte `start` of its log, without a traceback."""
    try:
        with log.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            begin = start if start <= end else 0  # the server renamed a full log, and began another one
            file.seek(max(begin, end - _LAST_WORDS))
            written = file.read().decode("utf-8", "replace").splitlines()
    except OSError as error:
        return f"its log cannot be read ({error.strerror})"
    errors = [at for at, line in enumerate(written) if line.startswith("error: ")]
    if errors:
        first, *after = written[errors[-1] :]
        more = takewhile(lambda line: line.startswith("  "), after)
        return "\n".join([first.removeprefix("error: "), *map(str.strip, more)])
    messages = [line for line in written if line.strip() and not line.startswith((" ", "Traceback "))]
    return (messages or ["it wrote nothing to its log"])[-1]
