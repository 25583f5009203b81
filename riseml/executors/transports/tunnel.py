"""One ssh for each host, with a private unix socket on this machine: it leads to the engine's socket on the host, or
takes commands for it.

The OpenSSH client does the work, with the keys, jumps and aliases of the user's own configuration. `tunnel_phases`
decides; the thread of a tunnel runs ssh and reports what happens. The SDK's own ssh support logs in for each connection
of each client. Measured on the loopback of a busy 2-core machine: a login takes 760 ms, a new client through a tunnel
that is up has its first answer after 3 ms. Three facts shape this module:

- ssh runs a LocalCommand when the forwarding is up. Its line replaces polling.
- The death signal of a child (PR_SET_PDEATHSIG) is bound to the *thread* that started it, and survives exec. So each
  tunnel has one thread, and a server that is killed leaves no ssh behind.
- An ssh that is killed leaves its socket file behind.
"""

from __future__ import annotations

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from riseml.base.errors import Unreachable
from riseml.base.folders import make_private
from riseml.executors.transports.diagnosis import Diagnosis
from riseml.executors.transports.ssh_command import Destination, build_tunnel_command, show_options
from riseml.executors.transports.tunnel_phases import (
    CloseRequested,
    ForwardingReady,
    OpenRequested,
    ReconnectRequested,
    SshEnded,
    TimePassed,
    TunnelEvent,
    TunnelPhase,
    TunnelState,
    TunnelTiming,
    advance,
)

_READY_LINE = "riseml: the tunnel is up"
_LONGEST_QUOTE = 200  # characters of ssh's own words in a message
_LONGEST_SOCKET = 90  # bytes; the kernel's limit is 107, and ssh adds 17 while it makes a socket that takes commands
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/._+-]+")  # characters that ssh reads neither as an expansion nor as a separator
_READ_AT_ONCE = 4096  # bytes read at once; a longer line of ssh is cut
_LINE_FRESH_FOR = 10.0  # seconds for which ssh's last line explains a failed call
_KEPT_LINES = 20  # lines of ssh's output
_BORING_LINES = ("Warning: Permanently added", "debug")
_START_SSH = '[ "$PPID" = "$0" ] && exec "$@"'  # do not start ssh when the parent died before the death signal was set
_NOT_CONNECTED = Diagnosis("ssh has not connected yet", "riseml keeps trying")

CommandBuilder = Callable[[Destination, Path, str, Mapping[str, int]], list[str]]
"""Returns the ssh of a tunnel, from where it leads, its socket, what it prints when it is up, and its timing."""


class Tunnel:
    """A tunnel that the first caller opens, and that opens again whenever it ends.

    Args:
        destination: where it leads.
        folder: for the local sockets; created so that no other user may enter it.
        timing: how long it waits.
        build: returns the command of ssh.
    """

    def __init__(
        self,
        destination: Destination,
        folder: Path,
        timing: TunnelTiming,
        build: CommandBuilder = build_tunnel_command,
    ) -> None:
        self._destination = destination
        self._build = build
        self._folder = folder
        self._timing = timing
        self._changed = threading.Condition()  # guards all fields below, and notifies of their changes
        self._state = TunnelState()
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)  # output of the current ssh
        self._last_line_at = 0.0  # monotonic seconds
        self._ssh: tuple[subprocess.Popen[bytes], int] | None = None  # with its attempt
        self._socket: Path | None = None
        self._thread: threading.Thread | None = None

    def open(self) -> Path:
        """Return the local socket, which stays the same. Only the first attempt lets callers wait: after a failure
        they get the failure at once, so that a host that does not answer delays no pass of the loop.

        Raises:
            Unreachable: the tunnel is not up.
        """
        with self._changed:
            self._feed(OpenRequested())
            if self._thread is None and self._state.wants_ssh:
                self._thread = threading.Thread(
                    target=self._keep_open, name=f"tunnel-{self._destination.name}", daemon=True
                )
                self._thread.start()
            seconds = self._timing.connect + self._timing.login
            if not self._changed.wait_for(lambda: not self._state.makes_callers_wait, seconds):
                self._feed(TimePassed())
            if self._state.phase is TunnelPhase.UP and self._socket is not None:
                return self._socket
            cause, hint = self._state.failure or _NOT_CONNECTED
        raise Unreachable(f"no way to host {self._destination.name} ({self._destination.url}): {cause}", hint)

    def explain_failure(self) -> Diagnosis | None:
        """Return why a call over the tunnel failed; None when ssh says nothing about it."""
        with self._changed:
            if self._state.phase is not TunnelPhase.UP:
                return self._state.failure
            if time.monotonic() - self._last_line_at > _LINE_FRESH_FOR:
                return None
            return explain_refused_socket(self._destination, tuple(self._lines))

    def reconnect(self) -> None:
        """Start the next attempt now unless the tunnel is up; callers wait for that attempt."""
        self._feed(ReconnectRequested())

    def close(self) -> None:
        """End the tunnel for good."""
        self._feed(CloseRequested())
        thread = self._thread
        if thread is not None:
            thread.join()

    def _feed(self, event: TunnelEvent) -> None:
        with self._changed:
            before = self._state
            self._state = advance(before, event, time.monotonic(), self._timing)
            if self._state != before:
                self._kill_unwanted_ssh()
                self._changed.notify_all()

    def _kill_unwanted_ssh(self) -> None:
        if self._ssh is not None:
            process, attempt = self._ssh
            if not self._state.wants_attempt(attempt):
                process.kill()

    def _keep_open(self) -> None:
        """Run ssh whenever the state requires it, until the tunnel is closed."""
        while True:
            with self._changed:
                while not self._state.wants_ssh:
                    if self._state.phase is TunnelPhase.CLOSED:
                        return
                    self._changed.wait(self._find_seconds_left())
                    self._feed(TimePassed())
                attempt = self._state.attempt
            try:
                failure = self._run_ssh(attempt)
            except OSError as error:
                failure = Diagnosis(
                    f"ssh cannot be started: {error}", "is the OpenSSH client installed on this machine?"
                )
            self._feed(SshEnded(attempt, failure))

    def _run_ssh(self, attempt: int) -> Diagnosis:
        """Run ssh to its end and return why it ended."""
        path = self._socket = self._socket or _new_socket(self._folder)
        options = {
            "ConnectTimeout": self._timing.connect,
            "ServerAliveInterval": self._timing.alive_interval,
            "ServerAliveCountMax": self._timing.alive_count,
        }
        command = _bind_to_thread(self._build(self._destination, path, _READY_LINE, options))
        environment = {**os.environ, "LC_ALL": "C", "SHELL": "/bin/sh"}  # messages in English, a shell that has echo
        try:
            with subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
            ) as process:
                self._follow_ssh(process, attempt)
            return explain_ssh_end(self._destination, tuple(self._lines), process.returncode)
        finally:
            path.unlink(missing_ok=True)

    def _follow_ssh(self, process: subprocess.Popen[bytes], attempt: int) -> None:
        """Read ssh's output until it ends, or until the state no longer needs it."""
        assert process.stdout is not None
        with self._changed:
            self._lines.clear()
            self._ssh = (process, attempt)
            self._kill_unwanted_ssh()  # the tunnel may have been closed since
        poll = select.poll()
        poll.register(process.stdout, select.POLLIN)
        try:
            with _open_pidfd(process.pid) as pidfd:
                if pidfd is not None:
                    poll.register(pidfd, select.POLLIN)
                self._read_lines(process.stdout.fileno(), poll, attempt)
        finally:
            with self._changed:
                self._ssh = None

    def _read_lines(self, pipe: int, poll: select.poll, attempt: int) -> None:
        open_line = b""
        while self._state.wants_attempt(attempt):
            seconds = self._find_seconds_left()
            ready = [descriptor for descriptor, _ in poll.poll(None if seconds is None else seconds * 1000)]
            if not ready:
                self._feed(TimePassed())
                continue
            chunk = os.read(pipe, _READ_AT_ONCE) if pipe in ready else b""
            if not chunk:
                return
            *lines, open_line = (open_line + chunk).split(b"\n")
            for line in lines:
                self._take_line(line.decode("utf-8", "replace").strip(), attempt)
            open_line = open_line[-_READ_AT_ONCE:]

    def _take_line(self, line: str, attempt: int) -> None:
        if line == _READY_LINE:
            self._feed(ForwardingReady(attempt))
            return
        with self._changed:
            self._lines.append(line)
            self._last_line_at = time.monotonic()

    def _find_seconds_left(self) -> float | None:
        """Return the seconds until `TimePassed` is due; None: there is no deadline."""
        deadline = self._state.find_deadline(self._timing)
        return None if deadline is None else max(0.0, deadline - time.monotonic())


def explain_ssh_end(destination: Destination, lines: Sequence[str], code: int) -> Diagnosis:
    """Return why ssh ended: its own words, with an explanation.

    ssh has one exit code (255) for all its own failures, so its messages are the only source. The tunnel runs it with
    LC_ALL=C, and the messages are those of OpenSSH 8 and 9.

    Args:
        destination: where the tunnel leads.
        lines: what ssh printed last.
        code: its exit code; negative: the signal that ended it.
    """
    text = "\n".join(lines)
    for pattern, explain in _EXPLANATIONS:
        match = pattern.search(text)
        if match is not None:
            return explain(destination, match)
    if code < 0:
        return Diagnosis(f"ssh was ended by signal {-code}", "riseml starts it again")
    last = next((line for line in reversed(lines) if line.strip() and not line.startswith(_BORING_LINES)), "")
    hint = f"try `ssh {show_options(destination)} true`"
    return Diagnosis(f"ssh ended with exit code {code}" + (f": {_shorten_line(last)}" if last else ""), hint)


def explain_refused_socket(destination: Destination, lines: Sequence[str]) -> Diagnosis | None:
    """Return why the engine's socket does not open although the tunnel is up; None when ssh's last line is about
    something else.
    """
    if not lines or "open failed" not in lines[-1]:
        return None
    socket = destination.url.socket
    return Diagnosis(
        f"ssh gets in, but {socket} on the host cannot be opened ({_shorten_line(lines[-1])})",
        f"does Docker run there, and may this user use it? `ssh {show_options(destination)} ls -l {socket}`",
    )


@contextmanager
def _open_pidfd(pid: int) -> Iterator[int | None]:
    """Give a descriptor that is readable when the process has ended; None from a kernel before 5.3.

    The end of its output is not enough: a child of ssh (the jump to another host) may run on and keep the pipe open.
    """
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        yield None
        return
    try:
        yield pidfd
    finally:
        os.close(pidfd)


def _bind_to_thread(command: list[str]) -> list[str]:
    """Return a command that the kernel kills when the thread that starts it ends, and so when this process ends.

    Without `setpriv`, a server that is killed leaves its ssh behind, unused.
    """
    setpriv = shutil.which("setpriv")
    if setpriv is None or Path(setpriv).resolve().name != "setpriv":  # the one of busybox lacks --pdeathsig
        return command
    return [setpriv, "--pdeathsig", "KILL", "--", "/bin/sh", "-c", _START_SSH, str(os.getpid()), *command]


def _new_socket(folder: Path) -> Path:
    """Return a new path for a socket that only this user can reach; remove the sockets of processes that ended."""
    path = folder / f"{os.getpid()}-{secrets.token_hex(4)}.sock"
    if len(os.fsencode(path)) > _LONGEST_SOCKET or _PLAIN_PATH.fullmatch(str(path)) is None:
        short = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
        path = Path("/tmp") / f"riseml-{os.getuid()}-{short}-tunnels" / path.name
    make_private(path.parent)
    for other in path.parent.glob("*.sock"):
        pid = other.stem.partition("-")[0]
        if pid.isdigit() and not _process_exists(int(pid)):
            other.unlink(missing_ok=True)
    return path


def _process_exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _explain_changed_key(destination: Destination, _: re.Match[str]) -> Diagnosis:
    return Diagnosis(
        f"its host key is not the one pinned in {destination.known_hosts}: another machine answers in its "
        "place, or the host was installed again",
        f"ask its owner for the fingerprint; only if it is right: `riseml pool trust {destination.name}`",
    )


def _explain_unknown_key(destination: Destination, match: re.Match[str]) -> Diagnosis:
    url = destination.url
    host = match["host"] or ""
    key = "its host key" if host in ("", url.host, f"[{url.host}]:{url.port}") else f"the host key of {host}"
    port = "" if url.port is None else f"-p {url.port} "
    return Diagnosis(
        f"{key} is not pinned in {destination.known_hosts}",
        f"compare the fingerprint and pin it: `riseml pool trust {destination.name}`, or "
        f"`ssh-keyscan {port}{url.host} >> {destination.known_hosts}`",
    )


def _explain_open_identity(destination: Destination, _: re.Match[str]) -> Diagnosis:
    identity = destination.identity
    return Diagnosis(f"ssh does not use {identity}: other users may read it", f"chmod 600 {identity}")


def _explain_refused_login(destination: Destination, match: re.Match[str]) -> Diagnosis:
    return Diagnosis(
        f"{match['login']} refuses the login ({match['methods']})",
        f"try `ssh {show_options(destination)} true`: it must work without a question",
    )


_EXPLANATIONS: tuple[tuple[re.Pattern[str], Callable[[Destination, re.Match[str]], Diagnosis]], ...] = (
    (re.compile(r"IDENTIFICATION HAS CHANGED|host key for .* has changed"), _explain_changed_key),
    (re.compile(r"No (\S+ )?host key is known for (?P<host>\S+)"), _explain_unknown_key),
    (re.compile(r"(?P<host>)Host key verification failed"), _explain_unknown_key),
    (re.compile(r"UNPROTECTED PRIVATE KEY FILE"), _explain_open_identity),
    (re.compile(r"(?P<login>\S+): Permission denied \((?P<methods>[^)]*)\)"), _explain_refused_login),
)
"""What ssh's words mean; the first pattern that is found counts."""


def _shorten_line(line: str) -> str:
    return "".join(char for char in line.removeprefix("ssh: ").strip() if char.isprintable())[:_LONGEST_QUOTE]
