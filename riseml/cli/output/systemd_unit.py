"""The systemd unit of a team's server. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from riseml.base.records import dataclass


@dataclass(frozen=True, slots=True)
class UnitFacts:
    """What a unit says about one server."""

    python: str  # absolute path
    variables: Sequence[tuple[str, str]]  # environment of the server
    writable: Sequence[str]  # absolute paths of the folders that the server writes
    private_tmp: bool  # False: the home or its socket is in /tmp


def list_unit(facts: UnitFacts) -> list[str]:
    """Return the lines of the unit.

    It runs as root, because a job's files belong to the job's user. A server that has lost its claim ends, and comes
    back as a standby (`Restart=always`). Jobs go on when the server ends (`KillMode=process`). The server reaches its
    engines over sockets, so it writes nothing but its own folders.
    """
    return [
        "[Unit]",
        "Description=riseml server for a team",
        "Wants=network-online.target",
        "After=network-online.target docker.service",
        "",
        "[Service]",
        "User=root",
        *(f"Environment={_quote(f'{name}={value}')}" for name, value in facts.variables),
        f"ExecStart={_quote(facts.python)} -m riseml.cli server run --standby",
        "WorkingDirectory=/",
        "Restart=always",
        "RestartSec=2",
        "KillMode=process",
        "TimeoutStopSec=30",
        "LimitNOFILE=65536",
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "ProtectHome=read-only",
        *(f"ReadWritePaths={_quote(path)}" for path in facts.writable),
        f"PrivateTmp={'yes' if facts.private_tmp else 'no'}",
        "ProtectKernelTunables=yes",
        "ProtectKernelModules=yes",
        "ProtectKernelLogs=yes",
        "ProtectControlGroups=yes",
        "ProtectClock=yes",
        "ProtectHostname=yes",
        "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
        "RestrictRealtime=yes",
        "RestrictSUIDSGID=yes",
        "LockPersonality=yes",
        "SystemCallArchitectures=native",
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    ]


def _escape(text: str) -> str:
    return text.replace("%", "%%")


def _quote(text: str) -> str:
    """Return a word as systemd reads it whole."""
    escaped = _escape(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
