"""Pinning the key of a real sshd: scan, compare, write; then the tunnel is up."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from riseml.base.errors import Conflict, Unreachable, UsageError
from riseml.base.names import HostName
from riseml.executors.transports.engine_client import Engine
from riseml.executors.transports.hostkeys import HostKey, Pinned, pin_keys, scan_keys
from riseml.executors.transports.ssh_command import Destination, find_destination
from riseml.spec.pool.types import HostSpec
from tests.real.transports.conftest import Connect, refusal, ssh_url
from tests.real.transports.servers import Sshd, make_key, public_key, wait


@pytest.fixture
def destination(sshd: Sshd, engine_url: str, tmp_path: Path) -> Destination:
    """The sshd as a host of the pool, with riseml's own known_hosts."""
    return find_destination(HostSpec(HostName("far"), ssh_url(sshd, engine_url)), tmp_path / "home")


def fingerprint(path: Path) -> str:
    """Return the fingerprint that ssh-keygen shows for a key."""
    said = subprocess.run(["ssh-keygen", "-lf", str(path)], check=True, capture_output=True, text=True).stdout
    return said.split()[1]


def test_a_key_is_shown_and_pinned(
    sshd: Sshd, destination: Destination, engine_url: str, connect: Connect, tmp_path: Path
) -> None:
    engine: Engine = connect(ssh_url(sshd, engine_url), identity=str(sshd.identity))
    assert "is not pinned" in refusal(engine).message
    (key,) = scan_keys(destination)
    assert (key.title, key.fingerprint, key.pinned) == ("ED25519", fingerprint(sshd.host_key), Pinned.NO)
    assert pin_keys(destination, frozenset({key.fingerprint})) == (HostKey(key.kind, key.blob, Pinned.YES),)
    assert (tmp_path / "home" / "known_hosts").stat().st_mode & 0o777 == 0o600
    wait("the tunnel finds it", lambda: _answers(engine))


def test_a_key_with_another_fingerprint_is_not_pinned(destination: Destination, sshd: Sshd, tmp_path: Path) -> None:
    other = fingerprint(make_key(tmp_path / "other"))
    with pytest.raises(Conflict, match="has no key with the fingerprint") as raised:
        pin_keys(destination, frozenset({other}))
    assert fingerprint(sshd.host_key) in str(raised.value.hint)
    assert not destination.known_hosts.exists()


@pytest.mark.parametrize("hashed", [False, True], ids=["plain", "hashed"])
def test_a_new_key_replaces_only_the_old_key_of_its_host(
    *,
    hashed: bool,
    destination: Destination,
    sshd: Sshd,
    tmp_path: Path,
) -> None:
    sshd.pin(make_key(tmp_path / "other"))
    others = "# a comment\nelsewhere ssh-ed25519 AAAA\n@revoked * ssh-ed25519 AAAA\n"
    destination.known_hosts.parent.mkdir(exist_ok=True)
    destination.known_hosts.write_text(sshd.known_hosts.read_text())
    if hashed:
        subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(destination.known_hosts)], check=True, capture_output=True)
        assert destination.known_hosts.read_text().startswith("|1|")
    destination.known_hosts.write_text(others + destination.known_hosts.read_text())
    assert [key.pinned for key in scan_keys(destination)] == [Pinned.OTHER]
    keys = pin_keys(destination, frozenset({fingerprint(sshd.host_key)}))
    assert [key.pinned for key in keys] == [Pinned.YES]
    (key,) = keys
    name = f"[127.0.0.1]:{sshd.port}"
    assert destination.known_hosts.read_text() == f"{others}{name} {key.kind} {key.blob}\n"


@pytest.mark.parametrize("field", ["127.0.0.*", "[127.0.0.*]:*", "127.0.0.1"])
def test_a_pattern_or_a_name_without_a_port_pins_the_key_as_ssh_sees_it(
    field: str, sshd: Sshd, destination: Destination, engine_url: str, connect: Connect
) -> None:
    destination.known_hosts.parent.mkdir()
    destination.known_hosts.write_text(f"{field} {public_key(sshd.host_key)}")
    assert [key.pinned for key in scan_keys(destination)] == [Pinned.YES]
    assert connect(ssh_url(sshd, engine_url), identity=str(sshd.identity)).version()


def test_a_host_without_sshd_shows_no_key(destination: Destination, sshd: Sshd) -> None:
    sshd.stop()
    with pytest.raises(Unreachable, match="shows no host key"):
        scan_keys(destination)


def test_a_configuration_that_ssh_cannot_read_is_reported_in_the_words_of_ssh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text("#!/bin/sh\necho '/home/paul/.ssh/config: terminating, 1 bad configuration options' >&2\nexit 255\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    far = find_destination(HostSpec(HostName("far"), "ssh://far"), tmp_path / "home")
    with pytest.raises(UsageError, match=r"host far .* 1 bad configuration options"):
        scan_keys(far)


def test_a_known_hosts_that_is_not_a_file_is_refused(destination: Destination, sshd: Sshd) -> None:
    destination.known_hosts.mkdir(parents=True)
    with pytest.raises(UsageError, match="known_hosts cannot be read"):
        scan_keys(destination)


def test_lines_in_any_encoding_stay_as_they_are(destination: Destination, sshd: Sshd) -> None:
    odd = b"# J\xfcrgen's machine\n|1|\xff|AAAA ssh-ed25519 AAAA\n"
    destination.known_hosts.parent.mkdir(exist_ok=True)
    destination.known_hosts.write_bytes(odd)
    pin_keys(destination, frozenset({fingerprint(sshd.host_key)}))
    assert destination.known_hosts.read_bytes().startswith(odd)


def test_only_ssh_has_host_keys(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="host here is not reached over ssh"):
        find_destination(HostSpec(HostName("here"), "unix:///var/run/docker.sock"), tmp_path)


def _answers(engine: Engine) -> bool:
    try:
        return bool(engine.version())
    except Unreachable:
        return False
