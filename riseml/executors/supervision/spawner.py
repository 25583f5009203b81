"""The spawner: a process that has imported the supervisor already, and forks one for each job.

A new Python takes 11 ms of processor time until it is a supervisor, two forks take 0.7. The server starts a spawner
with its first job (`start.SupervisorStarter`). Its standard input is a socket. Each message there is the marker and the
title of one job, and carries two descriptors: a file with the order, which the spawner does not read, and a pipe for
the answer. The spawner ends when the server has closed the socket, or has ended.

A supervisor is the child of a child that ends at once, so that no process of the server is above it: init adopts it, as
it adopts one that a new Python has started. It shows the command line and the variables of such a one. Where anything
fails here, the answer is empty, and the server starts a new Python.

Standard library, `supervisor` and `tree_limits` only. It has one thread.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import json  # noqa: F401  # for supervisors, which import it where they need it: it may be another version then
import os
import socket

from riseml.executors.supervision import supervisor, tree_limits  # noqa: F401  # as `json`
from riseml.executors.supervision.process_tree import MARKER

LONGEST_MESSAGE = 4096  # bytes
PROGRAM = "; ".join(
    (
        "import sys",
        "sys.path.append(sys.argv[1])",
        "from riseml.executors.supervision.spawner import main",
        "main()",
    )
)
"""What Python runs: this module, found without site-packages."""

_SPARE = 512  # bytes for the words of a supervisor that are longer than those of its spawner
_ARGUMENTS = 45  # field of stat, counted after the name (proc(5)): where the arguments begin; their end, variables
_DESCRIPTORS = 2  # of a message


def make_command() -> list[str]:
    """Return the command of a spawner. The last word has the space for the titles of its supervisors."""
    *python, _, root, title = supervisor.make_command("riseml spawner".ljust(_SPARE))
    return [*python, PROGRAM, root, title]


def make_environment() -> dict[str, str]:
    """Return the variables of a spawner. The last one has the space for the markers of its supervisors."""
    return {"PATH": os.defpath, "RISEML_SPARE": " " * _SPARE}


def main() -> None:
    """Fork a supervisor for each message, until the server has closed the socket."""
    requests = socket.socket(fileno=0)
    gc.collect()
    gc.freeze()  # a supervisor shares the memory of what is there now
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, LONGEST_MESSAGE, _DESCRIPTORS)
        if not message:
            return
        for descriptor in descriptors:
            fcntl.fcntl(descriptor, fcntl.F_SETFD, fcntl.FD_CLOEXEC)  # Python 3.11 ignores the flags of `recv_fds`
        _fork_supervisor(message, descriptors)


def _fork_supervisor(message: bytes, descriptors: list[int]) -> None:
    """Fork twice, so that init adopts the supervisor. Without a free process slot there is no supervisor."""
    child = _try_fork()
    if child == 0:
        grandchild = _try_fork()
        if grandchild == 0:
            _become_supervisor(message, descriptors)
        os._exit(0)
    if child is not None:
        os.waitpid(child, 0)
    for descriptor in descriptors:
        os.close(descriptor)


def _try_fork() -> int | None:
    try:
        return os.fork()
    except OSError:
        return None


def _become_supervisor(message: bytes, descriptors: list[int]) -> None:
    """Supervise a job; does not return."""
    try:
        with open(os.devnull, "rb") as empty:
            os.dup2(empty.fileno(), 0)  # in place of the socket: the server must see the end of the spawner
        marker, title = message.decode("utf-8", "surrogateescape").split("\0")
        order, answer = descriptors
        show_words(supervisor.make_command(title), {"PATH": os.defpath, MARKER: marker})
        with open(order, "rb") as file:
            content = file.read()
        supervisor.supervise(content, answer)
    finally:
        os._exit(1)


def show_words(command: list[str], environment: dict[str, str]) -> None:
    """Let /proc show this command line and these variables for this process, as for one that was started with them.

    Raises:
        ValueError: they take more space than what this process was started with.
    """
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    arguments, arguments_end, variables, variables_end = map(int, fields[_ARGUMENTS : _ARGUMENTS + 4])
    words = (f"{name}={value}" for name, value in environment.items())
    for texts, start, end in ((command, arguments, arguments_end), (words, variables, variables_end)):
        content = b"".join(os.fsencode(text) + b"\0" for text in texts)
        if len(content) > end - start:
            raise ValueError(f"{len(content)} bytes do not fit into {end - start}")
        ctypes.memmove(start, content.ljust(end - start, b"\0"), end - start)
