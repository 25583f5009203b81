"""The OpenSSH client's command lines: for a tunnel, and for a connection that commands share."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from riseml.base.errors import UsageError
from riseml.base.records import dataclass
from riseml.spec.pool.types import HostSpec
from riseml.spec.scalars.engine_url import EngineUrl, Scheme, parse_engine_url

_OPTIONS = {
    "IgnoreUnknown": "KnownHostsCommand",  # older clients do not have it
    "BatchMode": "yes",  # no user is present to type a password
    "StrictHostKeyChecking": "yes",
    "GlobalKnownHostsFile": "/dev/null",
    "KnownHostsCommand": "none",
    "VerifyHostKeyDNS": "no",
    "UpdateHostKeys": "no",
    "CheckHostIP": "no",
    "ExitOnForwardFailure": "yes",
    "StreamLocalBindUnlink": "yes",
    "StreamLocalBindMask": "0177",
    "ControlMaster": "no",  # a shared connection would outlive this process
    "ControlPath": "none",
    "ControlPersist": "no",
    "RemoteCommand": "none",
    "LogLevel": "INFO",
    "PermitLocalCommand": "yes",
}


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a tunnel leads."""

    name: str  # name of the host in the pool
    url: EngineUrl
    known_hosts: Path  # the file with the pinned host keys
    identity: Path | None = None  # the private key; None: the ones that ssh finds by itself


def find_destination(spec: HostSpec, home: Path) -> Destination:
    """Return where the tunnel of a host leads.

    Args:
        spec: the host.
        home: RISEML_HOME; its known_hosts has the keys, unless the host names another file.

    Raises:
        UsageError: the host is not reached over ssh.
    """
    url = parse_engine_url(spec.url)
    if url.scheme is not Scheme.SSH:
        raise UsageError(f"host {spec.name} is not reached over ssh, but at {url}", "only ssh has host keys to pin")
    known_hosts = Path(spec.known_hosts) if spec.known_hosts else home / "known_hosts"
    return Destination(spec.name, url, known_hosts, Path(spec.identity) if spec.identity else None)


def build_tunnel_command(
    destination: Destination, local_socket: Path, ready_line: str, timing: Mapping[str, int]
) -> list[str]:
    """Return the command that opens a tunnel.

    Args:
        destination: where the tunnel leads.
        local_socket: the unix socket on this machine.
        ready_line: what ssh prints when the tunnel is up.
        timing: options of ssh in seconds or counts: `{"ConnectTimeout": 10}`.
    """
    forward = f"{local_socket}:{destination.url.socket}"
    return _build_command(destination, ["-L", forward], {**timing, "LocalCommand": f"echo {ready_line}"})


def build_shared_command(
    destination: Destination, control_socket: Path, ready_line: str, timing: Mapping[str, int]
) -> list[str]:
    """Return the command that opens a connection for the commands of `build_session_command`.

    Args:
        destination: where it leads.
        control_socket: the unix socket on this machine at which ssh takes commands; it ends with this ssh.
        ready_line, timing: as of `build_tunnel_command`.
    """
    shared = {"ControlMaster": "yes", "ControlPath": _quote_path(control_socket)}
    return _build_command(destination, [], {**timing, **shared, "LocalCommand": f"echo {ready_line}"})


def build_session_command(control_socket: Path, host: str, command: Sequence[str]) -> list[str]:
    """Return the command that runs another one over a connection that is open; it never opens one itself.

    Args:
        control_socket: the socket of `build_shared_command`.
        host: its name, which ssh wants and does not use.
        command: its words reach the other side as they are.
    """
    return [*_build_session(control_socket), "--", host, shlex.join(command)]


def build_port_command(control_socket: Path, host: str, address: str) -> list[str]:
    """Return the command whose standard streams are a connection to a port that the other side reaches.

    Args:
        control_socket, host: as of `build_session_command`.
        address: the address of the port, as the other side knows it: `10.0.0.11:40123`.
    """
    return [*_build_session(control_socket), "-W", address, "--", host]


def _build_session(control_socket: Path) -> list[str]:
    options = {
        "BatchMode": "yes",
        "ControlMaster": "no",
        "ControlPath": _quote_path(control_socket),
        "ProxyCommand": "false",  # what ssh would connect with when the socket is gone
        "LogLevel": "ERROR",
    }
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    return ["ssh", "-F", "none", "-T", "-a", "-x", *words]


def _build_command(destination: Destination, purpose: list[str], own: Mapping[str, object]) -> list[str]:
    url = destination.url
    options = {**_OPTIONS, "UserKnownHostsFile": _quote_path(destination.known_hosts), **own}
    command = ["ssh", "-N", "-T", "-a", "-x", *purpose]
    for name, value in options.items():
        command += ["-o", f"{name}={value}"]
    if destination.identity is not None:
        command += ["-o", f"IdentityFile={_quote_path(destination.identity)}", "-o", "IdentitiesOnly=yes"]
    if url.port is not None:
        command += ["-p", str(url.port)]
    if url.user is not None:
        command += ["-l", url.user]
    return [*command, "--", url.host]


def show_options(destination: Destination) -> str:
    """Return the arguments with which a user reaches the host by hand: `-i key -p 2222 ann@gpu1`."""
    url = destination.url
    words = [] if destination.identity is None else ["-i", str(destination.identity)]
    words += [] if url.port is None else ["-p", str(url.port)]
    return " ".join([*words, url.host if url.user is None else f"{url.user}@{url.host}"])


def _quote_path(path: Path) -> str:
    """Return a path in the form of ssh's options: one word, without expansions."""
    text = str(path).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{text}"'
