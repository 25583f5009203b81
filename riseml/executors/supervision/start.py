"""Start a supervisor: it answers once what it supervises runs, and from then on outlives the server."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import threading
import time

from riseml.base.errors import EngineError
from riseml.base.records import dataclass
from riseml.executors.supervision import spawner, supervisor
from riseml.executors.supervision.process_tree import MARKER

_START_TIMEOUT = 60.0  # seconds within which a supervisor must answer
_FORK_TIMEOUT = 10.0  # seconds within which a supervisor of a spawner must answer; then a new Python is started
_SEND_TIMEOUT = 1.0  # seconds to send a message to a spawner, whose queue is full only while it is stopped
_END_TIMEOUT = 1.0  # seconds that a spawner gets to end
_ANSWER_SIZE = 4096  # bytes that are read at once


def start_supervisor(title: str, order: dict[str, object], marker: str) -> None:
    """Start a supervisor in a new Python and wait for its answer. The order has secrets in it, so it goes through a
    pipe.

    Args:
        title: for people who look at the processes.
        order: see `Supervisor`.
        marker: the value of `MARKER` in the environment of every process below it.

    Raises:
        EngineError: the supervisor did not start, or could not start its main process.
    """
    try:
        process = subprocess.run(
            supervisor.make_command(title),
            input=supervisor.pack_order(order),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.defpath, MARKER: marker},
            cwd="/",
            start_new_session=True,
            timeout=_START_TIMEOUT,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineError(f"the supervisor of {title} did not start: {error}") from error
    _check_answer(title, process.stdout)


class SupervisorStarter:
    """Starts supervisors through a spawner. Safe from many threads.

    The first start of a job starts the spawner, and so does the first one after its end. Where no answer comes through
    it, `start_supervisor` starts the same supervisor: of two for one job, the second one does nothing.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spawner: _Spawner | None = None
        self._is_closed = False

    def start(self, title: str, order: dict[str, object], marker: str) -> None:
        """Start a supervisor and wait for its answer; see `start_supervisor`.

        Raises:
            EngineError: the supervisor did not start, or could not start its main process.
        """
        answer = b""
        # some builds of Python lack the function; an error: no descriptor, no memory or no process slot is free
        if hasattr(os, "memfd_create"):
            with contextlib.suppress(OSError):
                answer = self._ask_spawner(f"{marker}\0{title}".encode("utf-8", "surrogateescape"), order)
        if answer:
            _check_answer(title, answer)
        else:
            start_supervisor(title, order, marker)

    def close(self) -> None:
        """End the spawner. Later starts do without one."""
        with self._lock:
            self._is_closed = True
            self._drop_spawner()

    def _ask_spawner(self, message: bytes, order: dict[str, object]) -> bytes:
        """Return the answer of a supervisor that the spawner forks; empty when there is none.

        The order goes through a file in memory: a pipe would be full, with a long order for a spawner that is stopped.
        """
        with contextlib.ExitStack() as stack:
            content = os.memfd_create("order", os.MFD_CLOEXEC)
            stack.callback(os.close, content)
            with open(content, "wb", closefd=False) as file:
                file.write(supervisor.pack_order(order))
            os.lseek(content, 0, os.SEEK_SET)
            reader, writer = os.pipe()
            stack.callback(os.close, reader)
            try:
                used = self._send(message, [content, writer])
            finally:
                os.close(writer)
            answer = _read_answer(reader, _FORK_TIMEOUT) if used is not None else b""
        if used is not None and not answer:
            self._replace_spawner(used)
        return answer

    def _send(self, message: bytes, descriptors: list[int]) -> _Spawner | None:
        """Send a message to the spawner; return the spawner, or None when there is none to send it to."""
        with self._lock:
            if self._is_closed or len(message) > spawner.LONGEST_MESSAGE:
                return None
            if self._spawner is not None and self._spawner.process.poll() is not None:
                self._drop_spawner()
            if self._spawner is None:
                self._spawner = _start_spawner()
            try:
                socket.send_fds(self._spawner.requests, [message], descriptors)
            except OSError:
                self._drop_spawner()
                raise
            return self._spawner

    def _replace_spawner(self, used: _Spawner) -> None:
        """End a spawner that gave no answer; the next start begins with another one."""
        with self._lock:
            if self._spawner is used:
                self._drop_spawner()

    def _drop_spawner(self) -> None:
        """End the spawner; the caller holds the lock."""
        if self._spawner is None:
            return
        self._spawner.requests.close()
        process, self._spawner = self._spawner.process, None
        try:
            process.wait(_END_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@dataclass(frozen=True, slots=True)
class _Spawner:
    """A spawner that runs."""

    process: subprocess.Popen[bytes]
    requests: socket.socket  # messages for it


def _start_spawner() -> _Spawner:
    requests, spawner_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with spawner_end:
        try:
            process = subprocess.Popen(
                spawner.make_command(),
                stdin=spawner_end.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=spawner.make_environment(),
                cwd="/",
                start_new_session=True,
            )
        except OSError:
            requests.close()
            raise
    requests.settimeout(_SEND_TIMEOUT)
    return _Spawner(process, requests)


def _read_answer(reader: int, seconds: float) -> bytes:
    """Return what is written into a pipe until its end; empty when the end does not come in time."""
    answer = b""
    end = time.monotonic() + seconds
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    while poll.poll(max(0.0, 1000 * (end - time.monotonic()))):
        data = os.read(reader, _ANSWER_SIZE)
        if not data:
            return answer
        answer += data
    return b""


def _check_answer(title: str, content: bytes) -> None:
    answer = content.decode("utf-8", "replace")
    if answer not in (supervisor.STARTED, supervisor.TAKEN):
        raise EngineError(f"the supervisor of {title} {answer or 'ended without an answer'}")
