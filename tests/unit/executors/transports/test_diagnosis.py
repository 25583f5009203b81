"""Failures of connections in plain words: of the operating system, of TLS, of ssh."""

from __future__ import annotations

import errno
import socket
import ssl
from dataclasses import replace
from pathlib import Path

import pytest
import requests
import urllib3
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool

from riseml.executors.transports.diagnosis import describe_cause
from riseml.executors.transports.ssh_command import Destination
from riseml.executors.transports.tls_bridge import explain_tls_failure
from riseml.executors.transports.tunnel import explain_refused_socket, explain_ssh_end
from riseml.spec.pool.types import Tls
from riseml.spec.scalars.engine_url import parse_engine_url


def wrap(cause: OSError) -> requests.exceptions.ConnectionError:
    """Return an error as requests raises it when urllib3 cannot connect."""
    new = urllib3.exceptions.NewConnectionError(HTTPConnection("localhost"), f"cannot connect: {cause}")
    new.__cause__ = cause
    failed = urllib3.exceptions.MaxRetryError(HTTPConnectionPool("localhost"), "/", new)
    return requests.exceptions.ConnectionError(failed)


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


TLS = Tls("ca.pem", "cert.pem", "key.pem")
URL = parse_engine_url("tcp://gpu1.lab:2376")


def tls_error(reason: str) -> requests.exceptions.SSLError:
    """Return an error of OpenSSL with this reason, as requests wraps it."""
    error = ssl.SSLError(1, reason)
    error.reason = reason
    return requests.exceptions.SSLError(error)


def certificate_error(code: int, message: str) -> requests.exceptions.SSLError:
    """Return a failed verification of the engine's certificate."""
    error = ssl.SSLCertVerificationError(1, message)
    error.verify_code, error.verify_message = code, message
    return requests.exceptions.SSLError(error)


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (tls_error("WRONG_VERSION_NUMBER"), "port 2376 does not speak TLS"),
        (tls_error("HTTP_REQUEST"), "port 2376 does not speak TLS"),
        (
            tls_error("SSLV3_ALERT_CERTIFICATE_EXPIRED"),
            "the engine refuses riseml's certificate cert.pem: it has expired",
        ),
        (tls_error("TLSV13_ALERT_CERTIFICATE_REQUIRED"), "the engine requires a certificate from riseml, and got none"),
        (tls_error("TLSV1_ALERT_UNKNOWN_CA"), "the engine refuses riseml's certificate cert.pem"),
        (tls_error("KEY_VALUES_MISMATCH"), "key.pem is not the key of cert.pem"),
        (tls_error("NO_CERTIFICATE_OR_CRL_FOUND"), "ca.pem, cert.pem or key.pem is not a usable PEM file: "),
        (tls_error(""), "ca.pem, cert.pem or key.pem is not a usable PEM file: "),
        (tls_error("UNSAFE_LEGACY_RENEGOTIATION"), "TLS with the engine fails: UNSAFE_LEGACY_RENEGOTIATION"),
        (certificate_error(10, "x"), "the engine's certificate has expired"),
        (certificate_error(9, "x"), "the engine's certificate is not valid yet"),
        (certificate_error(62, "Hostname mismatch"), "the engine's certificate is not for gpu1.lab: Hostname mismatch"),
        (certificate_error(64, "IP mismatch"), "the engine's certificate is not for gpu1.lab: IP mismatch"),
        (certificate_error(19, "self-signed"), "the engine's certificate is not signed by ca.pem (self-signed)"),
        (certificate_error(19, ""), "the engine's certificate is not signed by ca.pem (it cannot be verified)"),
    ],
)
def test_a_failure_of_tls_names_the_file_to_look_at(error: Exception, cause: str) -> None:
    found = explain_tls_failure(error, URL, TLS)
    assert found is not None
    assert found.cause.startswith(cause)
    assert found.hint


def test_any_alert_to_a_client_without_a_certificate_asks_for_one() -> None:
    found = explain_tls_failure(tls_error("SSLV3_ALERT_HANDSHAKE_FAILURE"), URL, replace(TLS, cert=""))
    assert found is not None
    assert "got none" in found.cause


def test_a_refused_connection_says_nothing_about_tls() -> None:
    assert explain_tls_failure(wrap(ConnectionRefusedError(errno.ECONNREFUSED, "x")), URL, TLS) is None


FAR = Destination("far", parse_engine_url("ssh://ann@gpu1.lab:2222"), Path("pins"), Path("key"))


@pytest.mark.parametrize(
    ("lines", "code", "cause", "hint"),
    [
        (["@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @"], 255, "not the one pinned in pins", "far"),
        (["ED25519 host key for gpu1.lab has changed and you"], 255, "not the one pinned in pins", "far"),
        (
            ["No ED25519 host key is known for [gpu1.lab]:2222 and", "Host key verification failed."],
            255,
            "its host key is not pinned in pins",
            "`ssh-keyscan -p 2222 gpu1.lab >> pins`",
        ),
        (["No ED25519 host key is known for jump.lab and"], 255, "the host key of jump.lab is not pinned", "trust far"),
        (["Host key verification failed."], 255, "its host key is not pinned in pins", "trust far"),
        (
            ["@ WARNING: UNPROTECTED PRIVATE KEY FILE! @"],
            255,
            "ssh does not use key: other users may read",
            "chmod 600",
        ),
        (
            ["ann@gpu1.lab: Permission denied (publickey,password)."],
            255,
            "ann@gpu1.lab refuses the login (publickey,password)",
            "`ssh -i key -p 2222 ann@gpu1.lab true`",
        ),
        ([], -9, "ssh was ended by signal 9", "starts it again"),
        (
            ["ssh: connect to host gpu1.lab port 2222: Connection refused\x07", "debug1: x", ""],
            255,
            "ssh ended with exit code 255: connect to host gpu1.lab port 2222: Connection refused",
            "try `ssh",
        ),
        ([], 1, "ssh ended with exit code 1", "try `ssh"),
    ],
)
def test_the_output_of_ssh_gives_the_cause_of_its_end(lines: list[str], code: int, cause: str, hint: str) -> None:
    found = explain_ssh_end(FAR, lines, code)
    assert cause in found.cause
    assert hint in found.hint


def test_a_refused_socket_is_the_cause_only_in_the_last_line_of_ssh() -> None:
    refused = "channel 1: open failed: connect failed: open failed"
    found = explain_refused_socket(FAR, ["x", refused])
    assert found is not None
    assert "/var/run/docker.sock on the host cannot be opened" in found.cause
    assert explain_refused_socket(FAR, [refused, "x"]) is None
    assert explain_refused_socket(FAR, []) is None
