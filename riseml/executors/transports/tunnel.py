"""One ssh tunnel for each host: the engine's unix socket over there as a private one here.

The OpenSSH client does it, with the keys, jumps and aliases of the user's own configuration. Facts that this module
rests on: ssh runs a LocalCommand when the forwarding stands, which tells us without asking again and again; a child's
death signal (PR_SET_PDEATHSIG) hangs on the *thread* that started it, so that each tunnel has a thread of its own, and
it survives exec; a killed ssh leaves its socket behind.
"""

from __future__ import annotations

import enum
import hashlib
import os
import re
import secrets
import select
import shutil
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from riseml.errors import Unreachable
from riseml.executors.transports.ssh_command import Destination, arguments, explain_end, explain_refused_socket
from riseml.folders import make_private

_READY = "riseml: the tunnel stands"
_LONGEST_SOCKET = 100  # bytes; the kernel's limit for the path of a unix socket is 108
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/._+-]+")  # what ssh does not read as an expansion or a separator
_CHUNK = 4096
_FRESH = 10.0  # seconds that ssh's last word explains a failure
_LINES = 20  # of ssh's last words
_SHELL = '[ "$PPID" = "$0" ] && exec "$@"'  # the death signal is set; did the parent die before that?


@dataclass(frozen=True, slots=True)
class Timing:
    """In seconds: `connect` until the other side has to answer, `login` more for the rest; then it is asked every
    `alive`, and given up after `count` questions without an answer. A tunnel that has ended is opened again after
    `delay`, which doubles up to `longest` while it does not stand for as long as that.
    """

    connect: int = 10
    login: int = 10
    alive: int = 5
    count: int = 3
    delay: float = 0.5
    longest: float = 30.0


class _Phase(enum.Enum):
    NEW = "new"
    CONNECTING = "connecting"
    UP = "up"
    DOWN = "down"
    CLOSED = "closed"


class Tunnel:
    """A tunnel that is opened when it is first wanted, and again whenever it ends.

    Args:
        destination: where it leads.
        folder: of the local sockets; it is made, and nobody else may enter it.
        timing: how long is waited.
    """

    def __init__(self, destination: Destination, folder: Path, timing: Timing) -> None:
        self._destination = destination
        self._folder = folder
        self._timing = timing
        self._changed = threading.Condition()
        self._phase = _Phase.NEW
        self._trouble: tuple[str, str] | None = None
        self._words: deque[str] = deque(maxlen=_LINES)
        self._heard_at = 0.0
        self._hurried = False
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: Path | None = None
        self._thread: threading.Thread | None = None

    def open(self) -> Path:
        """The local socket, always the same one. Only the very first caller waits for the tunnel: when it has ended,
        callers are told so until it stands again, and a host that does not answer delays nobody.

        Raises:
            Unreachable: the tunnel does not stand.
        """
        with self._changed:
            if self._thread is None and self._phase is _Phase.NEW:
                self._start()
            if self._phase is _Phase.CONNECTING and self._trouble is None:
                seconds = self._timing.connect + self._timing.login
                self._changed.wait_for(lambda: self._phase is not _Phase.CONNECTING, seconds)
            if self._phase is _Phase.UP and self._socket is not None:
                return self._socket
            what, hint = self._trouble or ("ssh has not connected yet", "it goes on trying")
        raise Unreachable(f"no way to host {self._destination.name} ({self._destination.url}): {what}", hint)

    def explain_failure(self) -> tuple[str, str] | None:
        """Why a call over the tunnel has failed, and what to do next; None when ssh says nothing about it."""
        with self._changed:
            if self._phase is not _Phase.UP:
                return self._trouble
            if time.monotonic() - self._heard_at > _FRESH:
                return None
            return explain_refused_socket(self._destination, tuple(self._words))

    def reconnect(self) -> None:
        """Open it again now, if it waits for its next attempt; callers wait for that one."""
        with self._changed:
            if self._phase is _Phase.DOWN:
                self._phase, self._trouble, self._hurried = _Phase.CONNECTING, None, True
                self._changed.notify_all()

    def close(self) -> None:
        """End the tunnel; it cannot be opened again."""
        with self._changed:
            self._phase = _Phase.CLOSED
            self._trouble = ("it was closed", "the host has left the pool")
            self._changed.notify_all()
            if self._process is not None:
                self._process.kill()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _start(self) -> None:
        self._phase = _Phase.CONNECTING
        name = f"tunnel-{self._destination.name}"
        self._thread = threading.Thread(target=self._keep_open, name=name, daemon=True)
        self._thread.start()

    def _keep_open(self) -> None:
        delay = self._timing.delay
        while True:
            began = time.monotonic()
            try:
                self._run()
            except OSError as error:
                self._note_end((f"ssh cannot be started: {error}", "is the OpenSSH client installed on this machine?"))
            if time.monotonic() - began > self._timing.longest:
                delay = self._timing.delay
            with self._changed:
                self._changed.wait_for(lambda: self._phase is _Phase.CLOSED or self._hurried, delay)
                if self._phase is _Phase.CLOSED:
                    return
                delay = self._timing.delay if self._hurried else delay
                self._phase, self._hurried = _Phase.CONNECTING, False
            delay = min(delay * 2, self._timing.longest)

    def _run(self) -> None:
        """One life of the tunnel."""
        path = self._socket = self._socket or _new_socket(self._folder)
        options = {
            "ConnectTimeout": self._timing.connect,
            "ServerAliveInterval": self._timing.alive,
            "ServerAliveCountMax": self._timing.count,
        }
        command = _bound_to_us(arguments(self._destination, path, _READY, options))
        environment = {**os.environ, "LC_ALL": "C", "SHELL": "/bin/sh"}  # our words, and a shell that echoes
        try:
            with subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
            ) as process:
                self._follow(process)
            self._note_end(explain_end(self._destination, tuple(self._words), process.returncode))
        finally:
            path.unlink(missing_ok=True)

    def _follow(self, process: subprocess.Popen[bytes]) -> None:
        """Listen to ssh until it ends; end it when it does not get through in time."""
        assert process.stdout is not None
        with self._changed:
            self._words.clear()
            self._process = process
            if self._phase is _Phase.CLOSED:
                process.kill()
        deadline = time.monotonic() + self._timing.connect + self._timing.login
        poll = select.poll()
        poll.register(process.stdout, select.POLLIN)
        with _handle(process.pid) as handle:
            if handle is not None:
                poll.register(handle, select.POLLIN)
            self._listen(process, poll, deadline)

    def _listen(self, process: subprocess.Popen[bytes], poll: select.poll, deadline: float) -> None:
        assert process.stdout is not None
        pipe = process.stdout.fileno()
        rest = b""
        while True:
            left = None if self._phase is _Phase.UP else max(0.0, deadline - time.monotonic()) * 1000
            ready = [descriptor for descriptor, _ in poll.poll(left)]
            if not ready:
                self._words.append("it does not answer")
                process.kill()
                return
            chunk = os.read(pipe, _CHUNK) if pipe in ready else b""
            if not chunk:
                return
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._hear(line.decode("utf-8", "replace").strip())
            rest = rest[-_CHUNK:]

    def _hear(self, line: str) -> None:
        with self._changed:
            if line != _READY:
                self._words.append(line)
                self._heard_at = time.monotonic()
            elif self._phase is _Phase.CONNECTING:
                self._phase, self._trouble = _Phase.UP, None
                self._changed.notify_all()

    def _note_end(self, trouble: tuple[str, str]) -> None:
        with self._changed:
            self._process = None
            if self._phase is not _Phase.CLOSED:
                self._phase, self._trouble = _Phase.DOWN, trouble
            self._changed.notify_all()


@contextmanager
def _handle(pid: int) -> Iterator[int | None]:
    """A descriptor that can be read when the process has ended; None from a kernel before 5.3. The end of its output
    does not tell: what it has started (a jump to another host) may live on and hold that.
    """
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        yield None
        return
    try:
        yield handle
    finally:
        os.close(handle)


def _bound_to_us(command: list[str]) -> list[str]:
    """A command that is killed when the thread that starts it ends, and so with this process, however that ends.

    Where the tool is missing, a server that is killed leaves its ssh behind; nobody uses that any more.
    """
    setter = shutil.which("setpriv")
    if setter is None or Path(setter).resolve().name != "setpriv":  # busybox has one that cannot do this
        return command
    return [setter, "--pdeathsig", "KILL", "--", "/bin/sh", "-c", _SHELL, str(os.getpid()), *command]


def _new_socket(folder: Path) -> Path:
    """A new path for a socket, where nobody else gets; what processes that are gone have left there is removed."""
    path = folder / f"{os.getpid()}-{secrets.token_hex(4)}.sock"
    if len(os.fsencode(path)) > _LONGEST_SOCKET or _PLAIN_PATH.fullmatch(str(path)) is None:
        short = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
        path = Path("/tmp") / f"riseml-{os.getuid()}-{short}-tunnels" / path.name
    make_private(path.parent)
    for other in path.parent.glob("*.sock"):
        pid = other.stem.partition("-")[0]
        if pid.isdigit() and not _lives(int(pid)):
            other.unlink(missing_ok=True)
    return path


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
