"""Any listener but the 0600 socket refuses to start without certificate and key; TLS 1.2 or newer only."""

from __future__ import annotations

import os
import socket
import ssl
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.ports import find_free_port
from tests.support.waiting import DEADLINE
from tests.team.team_server import Team


def connect(team: Team, context: ssl.SSLContext) -> str | None:
    """Return the version that a handshake has agreed upon."""
    with (
        socket.create_connection(("127.0.0.1", team.port), DEADLINE) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        return connection.version()


def test_it_speaks_tls_1_2_and_1_3(team: Team) -> None:
    for version, name in ((ssl.TLSVersion.TLSv1_2, "TLSv1.2"), (ssl.TLSVersion.TLSv1_3, "TLSv1.3")):
        context = team.make_tls_context()
        context.minimum_version = context.maximum_version = version
        assert connect(team, context) == name


def test_older_versions_are_refused(team: Team) -> None:
    context = team.make_tls_context()
    with pytest.warns(DeprecationWarning):
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        connect(team, context)


def test_only_its_user_opens_the_socket_and_http_gets_nothing(team: Team) -> None:
    assert stat.S_IMODE((team.home / "server.sock").stat().st_mode) == 0o600
    with socket.create_connection(("127.0.0.1", team.port), DEADLINE) as plain:
        plain.sendall(b"GET /v1/server HTTP/1.1\r\nHost: localhost\r\n\r\n")
        try:
            assert b"HTTP" not in plain.recv(1 << 16)
        except ConnectionError:
            assert True is not None


@pytest.mark.parametrize(
    ("certificate", "problem"),
    [
        ("{cert: none.pem, key: none.pem}", "certificate.cert: "),
        ("{cert: cert.pem}", "certificate.key: is missing"),
        ("{cert: cert.pem, key: key.pem}", "cannot be used: "),
    ],
)
def test_a_server_without_a_usable_certificate_and_key_does_not_start(
    tmp_path: Path, certificate: str, problem: str
) -> None:
    port = find_free_port()
    for name in ("cert.pem", "key.pem"):
        (tmp_path / name).touch(0o600)
    (tmp_path / "server.yml").write_text(f"listen: 127.0.0.1:{port}\ncertificate: {certificate}\n")
    environ = {"PATH": os.environ["PATH"], "RISEML_HOME": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-m", "riseml.server"], env=environ, capture_output=True, text=True, check=False, cwd="/"
    )
    assert ended.returncode == 2
    assert problem in ended.stderr
    assert "Traceback" not in ended.stderr
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), DEADLINE)
