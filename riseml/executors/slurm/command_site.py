"""Where Slurm's commands run, and from where nodes are reached: the server's machine, or a login node over one ssh
connection that all share.
"""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from riseml.base.errors import RisemlError, Unreachable
from riseml.executors.transports.ssh_command import (
    Destination,
    build_port_command,
    build_session_command,
    build_shared_command,
    find_destination,
    show_options,
)
from riseml.executors.transports.tunnel import Tunnel
from riseml.executors.transports.tunnel_phases import TunnelTiming
from riseml.spec.pool.slurm import make_login_entry
from riseml.spec.pool.types import SlurmSpec

_CONNECT = 10.0  # seconds to connect to a node
_NO_COMMAND = 127  # exit code of a shell
_NO_CONNECTION = 255  # exit code of ssh


class CommandSite(Protocol):
    """Where commands run."""

    def wrap(self, command: Sequence[str]) -> list[str]:
        """Return the command of this machine that runs another one there, with its streams and its exit code.

        Raises:
            Unreachable: there is no way at present.
        """

    def explain_end(self, command: str, code: int) -> RisemlError | None:
        """Return why a command did not run there; None when the exit code is that of the command itself.

        Args:
            command: its name.
            code: the exit code of what `wrap` returned.
        """

    def connect(self, host: str, port: int) -> socket.socket:
        """Connect to a port of a node.

        Raises:
            OSError: the node cannot be reached from there.
            Unreachable: there is no way at present.
        """

    def reconnect(self) -> None:
        """Try at once, instead of after the current delay."""

    def close(self) -> None:
        """End the processes that were started to reach the site."""


class ThisMachine:
    """The server's own machine."""

    def wrap(self, command: Sequence[str]) -> list[str]:
        return list(command)

    def explain_end(self, command: str, code: int) -> RisemlError | None:
        return None

    def connect(self, host: str, port: int) -> socket.socket:
        return socket.create_connection((host, port), _CONNECT)

    def reconnect(self) -> None:
        """Do nothing: there is no connection."""

    def close(self) -> None:
        """Do nothing: there is no process."""


class LoginNode:
    """A machine behind a pinned ssh connection, which carries all commands.

    Args:
        destination: the machine, and its pinned host keys.
        folder: for the socket of the connection.
        timing: how long it waits.
    """

    def __init__(self, destination: Destination, folder: Path, timing: TunnelTiming) -> None:
        self._destination = destination
        self._tunnel = Tunnel(destination, folder, timing, build_shared_command)

    def wrap(self, command: Sequence[str]) -> list[str]:
        return build_session_command(self._tunnel.open(), self._destination.url.host, command)

    def explain_end(self, command: str, code: int) -> RisemlError | None:
        host = self._destination.url.host
        if code == _NO_COMMAND:
            way = show_options(self._destination)
            hint = f"`ssh {way} {command} --version` must work: set PATH there for shells without a terminal"
            return Unreachable(f"{command} is not found on {host}", hint)
        if code != _NO_CONNECTION:
            return None
        cause, hint = self._tunnel.explain_failure() or (
            "the connection broke, or the host takes no more sessions",
            "riseml connects again; MaxSessions of its sshd_config limits sessions",
        )
        return Unreachable(f"no answer of {command} from {host}: {cause}", hint)

    def connect(self, host: str, port: int) -> socket.socket:
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        command = build_port_command(self._tunnel.open(), self._destination.url.host, address)
        server_end, ssh_end = socket.socketpair()
        with ssh_end:
            ssh = subprocess.Popen(command, stdin=ssh_end.fileno(), stdout=ssh_end.fileno(), stderr=subprocess.DEVNULL)
        # ssh ends with the connection; a thread waits, so that no zombie is left
        threading.Thread(target=ssh.wait, name="node-connection", daemon=True).start()
        return server_end

    def reconnect(self) -> None:
        self._tunnel.reconnect()

    def close(self) -> None:
        self._tunnel.close()


def find_site(settings: SlurmSpec, home: Path, timing: TunnelTiming | None = None) -> CommandSite:
    """Return where the commands of a cluster run.

    Args:
        settings: of the cluster.
        home: RISEML_HOME, which has the pinned host keys and the sockets of ssh connections.
        timing: how long ssh waits; None: as for the hosts of a pool.
    """
    entry = make_login_entry(settings)
    if entry is None:
        return ThisMachine()
    return LoginNode(find_destination(entry, home), home / "tunnels", timing or TunnelTiming())
