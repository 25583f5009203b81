"""Failures of connections in plain words."""

from __future__ import annotations

import errno
import socket

import pytest
import requests
import urllib3

from riseml.executors.transports.diagnosis import describe_cause
from tests.unit.executors.transports.request_errors import wrap


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FileNotFoundError(errno.ENOENT, "x"), "no such file or directory"),
        (wrap(ConnectionRefusedError(errno.ECONNREFUSED, "x")), "connection refused"),
        (wrap(TimeoutError("x")), "timed out"),
        (wrap(OSError(errno.EHOSTUNREACH, "x")), "no route to host"),
        (wrap(OSError(errno.ENETUNREACH, "x")), "network is unreachable"),
        (wrap(socket.gaierror(socket.EAI_NONAME, "x")), "name or service not known"),
        (wrap(socket.gaierror(socket.EAI_AGAIN, "x")), "temporary failure in name resolution"),
        (requests.exceptions.ReadTimeout("x"), "timed out"),
        (
            requests.exceptions.ConnectionError(
                urllib3.exceptions.ProtocolError("Connection aborted.", ConnectionResetError(errno.ECONNRESET, "x"))
            ),
            "connection reset by peer",
        ),
        (PermissionError(errno.EACCES, "x"), "permission denied"),
        (ValueError("an unknown error" * 100), ("an unknown error" * 100)[:200]),
    ],
)
def test_the_type_or_the_code_of_an_error_gives_its_cause(error: Exception, words: str) -> None:
    assert describe_cause(error) == words


def test_errors_that_name_each_other_end() -> None:
    first, second = OSError("first"), OSError("second")
    first.__context__, second.__context__ = second, first
    assert describe_cause(first) == "first"
