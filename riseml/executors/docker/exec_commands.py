"""Commands in a running container (`exec` of the Docker Engine API): start, resize, exit code, and their complete end.

Facts of the engine that this module relies on: closing the connection does not end the command; there is no call that
does; `DetachKeys` cannot be switched off, and its default takes Ctrl-P away from the shell; the exit code may be
written a moment after the stream has ended, and the event `exec_die` says when it is.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from functools import cache, partial

import docker
from docker.errors import APIError, NotFound

from riseml.base.errors import RisemlError
from riseml.base.stream_messages import ChannelData, CommandRequest, WindowSize
from riseml.executors.base import NotThere
from riseml.executors.docker.exec_codecs import END_OF_INPUT, FramedCodec
from riseml.executors.job_streams import JobStream, RawCodec
from riseml.executors.transports.engine_client import Engine

MARKER = "RISEML_COMMAND_KEY"
"""The variable of every process of a command; its value is random, and differs for each command."""

SHELL = ("/bin/sh", "-c", "if command -v bash >/dev/null 2>&1; then exec bash; fi; exec sh")
"""What an order without a command runs."""

_SWEEP_SCRIPT = r"""
found=0
for folder in /proc/[0-9]*; do
  pid=${folder#/proc/}
  [ "$pid" != "$$" ] || continue
  marked=
  some=
  { while IFS= read -r line || [ -n "$line" ]; do
    some=1
    case $line in *"$2"*) marked=1 ;; esac
    [ -z "$3" ] || case $line in *"$3"*) marked= ;; esac
    line=
  done <"$folder/environ"; } 2>/dev/null
  [ -n "$some" ] || ! [ -e "$folder/exe" ] || found=$((found + 1))
  [ -n "$marked" ] || continue
  kill "-$1" "$pid" 2>/dev/null && found=$((found + 1))
done
echo "$found"
"""
"""Sends a signal to the processes that a command left in its container: the engine has no call for that.

Every process that a command starts inherits `MARKER` in its environment, and the script finds it by this marker. A
process whose program the kernel replaces (`execve`) shows no environment: it counts, so that another sweep follows. The
script needs only the shell that every job needs: images without `kill`, `grep` and `ps` are common.
"""

_EXEC = ("/bin/sh", "-c", 'exec "$@"', "sh")  # so that the shell itself reports a command that it cannot run
_DETACH_KEYS = ",".join(["ctrl-@", "ctrl-_", "ctrl-@", "ctrl-^"] * 8)  # keys that no user types
_MISSING = 404
_CONFLICT = 409
_GRACE = 2.0  # seconds between SIGHUP and SIGKILL
_MOST_SWEEPS = 5  # with SIGKILL: the next sweep finds processes that were forked during the last one
_CHUNK = 65536  # bytes
_LONGEST_SWEEP_OUTPUT = 4096  # bytes
_LONGEST_SWEEP = 10.0  # seconds

log = logging.getLogger(__name__)


def open_container_command(engine: Engine, name: str, request: CommandRequest) -> JobStream:
    """Start a command in the container of this name.

    Raises:
        NotThere: the container does not run.
    """
    key = make_key()
    variables = {MARKER: key, **({"TERM": request.term or "xterm"} if request.terminal else {})}
    has_terminal = request.terminal is not None
    command = [*_EXEC, *request.command] if request.command else list(SHELL)
    identity = create_exec(engine, name, command, variables, has_terminal=has_terminal)
    stream, received = engine.open_stream(f"/exec/{identity}/start", {"Detach": False, "Tty": has_terminal})
    control = _ExecControl(engine, name, identity, key)
    if request.terminal is not None:
        control.resize(request.terminal)
    return JobStream(stream, RawCodec(END_OF_INPUT) if has_terminal else FramedCodec(), control, received)


def end_forgotten_commands(engine: Engine, containers: Iterable[str]) -> None:
    """End the commands that killed servers had started in these containers; commands of this server go on.

    Sweep only containers in which the engine lists a command: a sweep costs more than that request.
    """
    for name in containers:
        try:
            if _has_commands(engine, name):
                _end_commands(partial(_sweep_former_servers, engine, name))
        except NotThere:
            continue  # the container is gone, and everything in it
        except (RisemlError, OSError) as error:
            log.warning("what a former server started in %s may run on: %s", name, error)


def make_key() -> str:
    """Return a new key for one command of this server."""
    return _make_key_prefix(os.getpid()) + secrets.token_hex(16)


def make_sweep(signal: str, key: str) -> list[str]:
    """Return a command that sends a signal (`HUP`) to every process with this key, and prints their number."""
    return ["/bin/sh", "-c", _SWEEP_SCRIPT, "sh", signal, f"{MARKER}={key}", ""]


def make_sweep_of_former_servers(signal: str) -> list[str]:
    """Return the same for the commands of all servers that have ended, whatever their keys are."""
    return ["/bin/sh", "-c", _SWEEP_SCRIPT, "sh", signal, f"{MARKER}=", f"{MARKER}={_make_key_prefix(os.getpid())}"]


@cache
def _make_key_prefix(process: int) -> str:
    """Return the prefix of all keys of one server process: a command with another prefix belongs to a server that has
    ended."""
    return f"{process}-{secrets.token_hex(8)}-"


def _has_commands(engine: Engine, name: str) -> bool:
    """Return True when the engine lists a command in a container; it forgets a command some minutes after its end."""
    with engine.api() as api:
        try:
            return bool(api.inspect_container(name).get("ExecIDs"))
        except NotFound as error:
            raise NotThere("the job does not run") from error


class _ExecControl:
    """The calls for one command outside of its stream."""

    def __init__(self, engine: Engine, container: str, identity: str, key: str) -> None:
        self._engine = engine
        self._container = container
        self._identity = identity
        self._key = key
        self._since = int(time.time()) - 3600  # start of the events; the clock of the engine may differ

    def resize(self, size: WindowSize) -> None:
        """Set the size of the terminal. The engine refuses it before the command has begun and after its end."""
        with self._engine.api() as api:
            try:
                api.exec_resize(self._identity, height=size.rows, width=size.columns)
            except APIError as error:
                log.debug("no size for command %s: %s", self._identity, error)

    def find_exit_code(self) -> int | None:
        with self._engine.api() as api:
            code = self._read_exit_code(api)
        if code is not None:
            return code
        with self._engine.stream() as api:
            self._wait_for_end(api)
            return self._read_exit_code(api)

    def end(self) -> None:
        try:
            _end_commands(lambda signal: _sweep(self._engine, self._container, make_sweep(signal, self._key)))
        except NotThere:
            return  # the container is gone, and everything in it
        except RisemlError as error:
            log.warning("what a command started in %s may run on: %s", self._container, error.message)

    def _read_exit_code(self, api: docker.APIClient) -> int | None:
        """Return the exit code; None while the command runs.

        Raises:
            NotThere: the container was removed, and the command with it.
        """
        try:
            inspection = api.exec_inspect(self._identity)
        except NotFound:
            raise NotThere("the job has ended before the command") from None
        code = inspection.get("ExitCode")
        return None if inspection.get("Running") or code is None else int(code)

    def _wait_for_end(self, api: docker.APIClient) -> None:
        """Wait for the event that the exit code is written; the engine also sends events since the command began."""
        filters = {"container": self._container, "event": ["exec_die", "die"]}
        with closing(api.events(since=self._since, filters=filters, decode=True)) as events:
            for event in events:
                attributes = event.get("Actor", {}).get("Attributes", {})
                if event.get("Action") == "die" or attributes.get("execID") == self._identity:
                    return


def _end_commands(sweep: Callable[[str], int]) -> None:
    """Send SIGHUP, then SIGKILL to the processes that are left.

    Args:
        sweep: sends a signal, and returns how many processes got it or could not be judged.
    """
    if sweep("HUP"):
        threading.Event().wait(_GRACE)
        for _ in range(_MOST_SWEEPS):
            if not sweep("KILL"):
                break


def _sweep_former_servers(engine: Engine, container: str, signal: str) -> int:
    """Send a signal to every command of servers that have ended; return the number of processes that got it."""
    return _sweep(engine, container, make_sweep_of_former_servers(signal))


def _sweep(engine: Engine, container: str, command: list[str]) -> int:
    """Run a sweep in a container; return how many processes got its signal or could not be judged."""
    identity = create_exec(engine, container, command, {}, has_terminal=False)
    stream, received = engine.open_stream(f"/exec/{identity}/start", {"Detach": False, "Tty": False})
    with stream:
        answer = _read_output(stream, received)
    return int(answer) if re.fullmatch("[0-9]{1,6}", answer) else 0  # the shell of the image may print anything


def create_exec(engine: Engine, name: str, command: list[str], variables: dict[str, str], *, has_terminal: bool) -> str:
    """Make a command in a running container, and return its id.

    Raises:
        NotThere: the container does not run.
    """
    with engine.api() as api:
        try:
            execution = api.exec_create(
                name,
                command,
                stdin=True,
                tty=has_terminal,
                environment=variables,
                detach_keys=_DETACH_KEYS if has_terminal else None,
            )
        except APIError as error:
            if error.status_code in (_MISSING, _CONFLICT):
                raise NotThere(str(error.explanation or error)) from error
            raise
    return str(execution["Id"])


def _read_output(stream: socket.socket, received: bytes) -> str:
    """Return the output of a command: all of it, or the part that arrived within the time for a sweep."""
    codec = FramedCodec()
    output = b""
    end = time.monotonic() + _LONGEST_SWEEP
    while True:
        output += b"".join(piece.content for piece in codec.decode(received) if isinstance(piece, ChannelData))
        try:
            stream.settimeout(max(0.001, end - time.monotonic()))
            received = stream.recv(_CHUNK)
        except OSError as error:
            log.debug("a sweep was cut: %s", error)
            received = b""
        if not received or len(output) > _LONGEST_SWEEP_OUTPUT:
            return output.decode("ascii", "replace").strip()
