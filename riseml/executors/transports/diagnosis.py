"""Why a connection failed, in plain words: the errors of the operating system, each with its sentence in one table.

TLS has a table of its own (`tls_bridge`), and so has ssh (`tunnel`).
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from typing import NamedTuple

import requests
import urllib3

_LONGEST_CAUSE = 200  # characters of an error that no table names


class Diagnosis(NamedTuple):
    """Why a call failed."""

    cause: str  # the reason, as the end of a sentence: "the engine does not answer: ..."
    hint: str  # what the user can do next


_CODES: dict[tuple[type[OSError], int], str] = {
    (OSError, errno.EHOSTUNREACH): "no route to host",
    (OSError, errno.ENETUNREACH): "network is unreachable",
    (socket.gaierror, socket.EAI_NONAME): "name or service not known",
    (socket.gaierror, socket.EAI_NODATA): "name or service not known",
    (socket.gaierror, socket.EAI_AGAIN): "temporary failure in name resolution",
}
"""What an error code means; the resolver's codes overlap with those of the kernel."""

_TYPES: tuple[tuple[type[BaseException], str], ...] = (
    (ConnectionRefusedError, "connection refused"),
    (ConnectionResetError, "connection reset by peer"),
    (BrokenPipeError, "the connection broke"),
    (FileNotFoundError, "no such file or directory"),
    (PermissionError, "permission denied"),
    (TimeoutError, "timed out"),
    (requests.exceptions.Timeout, "timed out"),
    (urllib3.exceptions.TimeoutError, "timed out"),  # last: urllib3's "cannot connect" is also of this type
)
"""What an error type means; the first row that any cause matches counts."""


def describe_cause(error: BaseException) -> str:
    """Return the cause of a failed connection in a few words.

    Example:
        >>> describe_cause(ConnectionRefusedError(111, "Connection refused"))
        'connection refused'
    """
    causes = list(walk_causes(error))
    for cause in causes:
        if isinstance(cause, OSError) and cause.errno is not None:
            base = socket.gaierror if isinstance(cause, socket.gaierror) else OSError
            if (base, cause.errno) in _CODES:
                return _CODES[base, cause.errno]
    for kind, words in _TYPES:
        if any(isinstance(cause, kind) for cause in causes):
            return words
    return str(error)[:_LONGEST_CAUSE]


def walk_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and all errors below it, nearest first: requests and urllib3 wrap one in several layers."""
    visited_ids: set[int] = set()
    waiting: list[object] = [error]
    while waiting:
        cause = waiting.pop(0)
        if not isinstance(cause, BaseException) or id(cause) in visited_ids:
            continue
        visited_ids.add(id(cause))
        yield cause
        waiting += [*cause.args, getattr(cause, "reason", None), cause.__cause__, cause.__context__]
