"""The user's own server: started when none answers, replaced when it is older than this command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from riseml import __version__
from riseml.cli.output.text import plural
from riseml.client import Client, read_address
from riseml.errors import Refused, Unreachable

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.output.printer import Render
    from riseml.settings import Settings

_DEADLINE = 60.0  # seconds that a server may take to start, or to end; one that has died is told of at once
_LOOK = 0.03  # seconds between two looks at the socket
_AGAIN = 0.3  # seconds before another server is tried
_LAST_WORDS = 8192  # bytes of the log that are searched for why it ended


class Child(Protocol):
    """A server that was started: `wait` gives its exit code, or raises `subprocess.TimeoutExpired`."""

    def wait(self, timeout: float) -> int:
        """Wait for its end."""


@dataclass(frozen=True, slots=True)
class Starter:
    """How a server is started and how long it is waited for."""

    spawn: Callable[[Settings, Sequence[str]], Child]
    command: Sequence[str] = (sys.executable, "-m", "riseml.server")
    deadline: float = _DEADLINE
    clock: Callable[[], float] = time.monotonic
    wait: Callable[[float], object] = field(default_factory=lambda: threading.Event().wait)


class Order(Enum):
    """How two versions stand to each other."""

    OLDER = "older"
    SAME = "same"
    NEWER = "newer"


def compare_versions(theirs: str, ours: str) -> Order:
    """How `theirs` stands to `ours` in PEP 440's order: `2.0.0.dev0` < `2.0.0rc1` < `2.0.0` < `2.0.0.post1`."""
    left, right = _version_key(theirs), _version_key(ours)
    return Order.SAME if left == right else Order.OLDER if left < right else Order.NEWER


def _version_key(version: str) -> tuple[tuple[int, ...], tuple[int, int], int, float]:
    found = re.match(
        r"v?(\d+(?:\.\d+)*)(?:[._-]?(a|b|rc)[a-z]*\.?(\d*))?(?:\.?post(\d+))?(?:\.?dev(\d+))?", version.strip().lower()
    )
    if found is None:
        return (0,), (0, 0), 0, 0.0  # unknown is older than anything
    release = re.sub(r"(\.0)+$", "", found[1])
    numbers = tuple(int(part) for part in release.split("."))
    development = float(found[5]) if found[5] else float("inf")
    post = int(found[4]) + 1 if found[4] else 0
    if found[2]:
        stage = ("a", "b", "rc").index(found[2]) + 1, int(found[3] or 0)
    else:
        stage = (0, 0) if found[5] and not post else (4, 0)
    return numbers, stage, post, development


def connect(settings: Settings, environ: Mapping[str, str], render: Render) -> Client:
    """A client of the server that is meant; the user's own one is started, or replaced, when it has to be.

    Raises:
        Unreachable: it cannot be reached, or cannot be started.
    """
    client = Client(read_address(settings, environ))
    if client.address.socket is None:
        return client
    try:
        server = ensure(client, settings)
        if compare_versions(server["version"], __version__) is Order.OLDER:
            server = _replace(client, settings, server, render)
        _compare(server, environ, render)
    except BaseException:
        client.close()
        raise
    return client


def ensure(client: Client, settings: Settings, starter: Starter | None = None) -> wire.ServerView:
    """The server that answers on the socket; it is started when there is none.

    Two commands may do this at once: the server itself sees to it that one of two ends quietly, with exit code 4.
    """
    return probe(client) or _start(client, settings, starter or Starter(spawn))


def probe(client: Client) -> wire.ServerView | None:
    """The server that answers now, None when there is none."""
    try:
        return client.server()
    except Unreachable:
        client.close()
        return None


def stop(client: Client, settings: Settings) -> wire.ServerView | None:
    """End the server that runs and wait until it is gone; training goes on. None: there was none."""
    server = probe(client)
    if server is None:
        return None
    client.stop_server()
    pause, begun = threading.Event(), time.monotonic()
    while time.monotonic() - begun < _DEADLINE:
        after = probe(client)
        if after is None or after["pid"] != server["pid"]:
            return server
        pause.wait(_LOOK)
    raise Unreachable(f"the riseml server (process {server['pid']}) does not end", _see(settings))


def spawn(settings: Settings, command: Sequence[str]) -> Child:
    """Start a process that outlives this one: its own session, no terminal, its output in the server's log."""
    try:
        settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        log = os.open(settings.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        why = "it is no folder" if settings.home.exists() and not settings.home.is_dir() else error.strerror
        raise Refused(
            f"the riseml server cannot use {settings.home}: {why}",
            "make it writable, or name another folder in RISEML_HOME",
        ) from None
    try:
        return subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,
            env={**os.environ, **_environ(settings)},
        )
    finally:
        os.close(log)


def _environ(settings: Settings) -> dict[str, str]:
    """What the server is told: the folders as they are from here, for it runs in another one."""
    folders = {"RISEML_HOME": settings.home, "RISEML_OUTPUT": settings.output, "RISEML_DATA": settings.data}
    told = {name: str(path) for name, path in folders.items()}
    return told | ({"RISEML_EXECUTOR": settings.executor} if settings.executor else {})


def _start(client: Client, settings: Settings, starter: Starter) -> wire.ServerView:
    begun = starter.clock()
    before = _size(settings.log)
    child = starter.spawn(settings, starter.command)
    while starter.clock() - begun < starter.deadline:
        code = _watch(child)
        if (server := probe(client)) is not None:
            return server
        if code in (0, Refused.exit_code):
            # Another server held the lock. It answers soon, or it was about to end: then it is our turn.
            starter.wait(_AGAIN)
            child = starter.spawn(settings, starter.command)
        elif code is not None:
            raise Unreachable(f"the riseml server did not start: {_last_words(settings, before)}", _see(settings))
    raise Unreachable(f"the riseml server did not answer within {starter.deadline:.0f} s", _see(settings))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # whoever begins to write there tells what is wrong
        return 0


def _watch(child: Child) -> int | None:
    """Wait for a moment, or until the child has ended: then its exit code."""
    try:
        return child.wait(_LOOK)
    except subprocess.TimeoutExpired:
        return None


def _last_words(settings: Settings, start: int) -> str:
    """What the server wrote last, without the lines of a traceback that only its makers can read."""
    try:
        with settings.log.open("rb") as log:
            end = log.seek(0, os.SEEK_END)
            log.seek(max(start, end - _LAST_WORDS))
            written = log.read().decode("utf-8", "replace").splitlines()
    except OSError as error:
        return f"its log cannot be read ({error.strerror})"
    errors = [at for at, line in enumerate(written) if line.startswith("error: ")]
    if errors:
        first, *after = written[errors[-1] :]
        more = takewhile(lambda line: line.startswith("  "), after)
        return "\n".join([first.removeprefix("error: "), *map(str.strip, more)])
    told = [line for line in written if line.strip() and not line.startswith((" ", "Traceback "))]
    return (told or ["it said nothing"])[-1]


def _see(settings: Settings) -> str:
    return f"its log is {settings.log}"


def _replace(client: Client, settings: Settings, server: wire.ServerView, render: Render) -> wire.ServerView:
    stop(client, settings)
    fresh = ensure(client, settings)
    if fresh["pid"] != server["pid"]:
        render.say(f"Replaced the riseml server {server['version']} by {fresh['version']}; training goes on.")
    return fresh


def use_executor(client: Client, settings: Settings, render: Render) -> None:
    """See to it that the local server runs jobs in the way that RISEML_EXECUTOR asks for, if it asks for one.

    Raises:
        Refused: the server uses the other executor, and still has experiments there.
    """
    wanted = settings.executor
    if wanted is None or client.address.socket is None:
        return
    server = client.server()
    if server["executor"] == wanted:
        return
    if server["active"]:
        raise Refused(
            f"the riseml server uses the {server['executor']} executor for {plural(server['active'], 'experiment')}",
            "wait until what runs has ended, or kill it: then the server is replaced",
        )
    stop(client, settings)
    ensure(client, settings)
    render.say(f"The riseml server now uses the {wanted} executor.")


def _compare(server: wire.ServerView, environ: Mapping[str, str], render: Render) -> None:
    """Warn when the server is not what this command would have started."""
    if compare_versions(server["version"], __version__) is Order.NEWER:
        render.warn(
            f"the riseml server is {server['version']}, this command is {__version__}; upgrade it with"
            " `pip install --upgrade riseml`"
        )
    engine = environ.get("DOCKER_HOST")
    if engine and server["engine"] not in ("", engine) and server["executor"] == "docker":
        render.warn(
            f"the riseml server uses the engine {server['engine']}, not DOCKER_HOST={engine}; `riseml server stop`"
            " lets the next command start one that does"
        )
