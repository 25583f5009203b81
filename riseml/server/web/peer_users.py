"""Which user of this machine has the other end of a connection over loopback: Linux says it in /proc/net/tcp."""

from __future__ import annotations

import socket
import struct
from ipaddress import ip_address
from typing import Any

_MAPPED = "::ffff:"
"""Begins an IPv4 address in a socket of IPv6: such a socket reaches a listener of IPv4, too."""


def find_peer_user(own: Any, peer: Any) -> int | None:
    """Return the uid of the other end; None when it is not of this machine, or the kernel does not say.

    Args:
        own: this end, as `getsockname` returns it.
        peer: the other end, as `getpeername` returns it.
    """
    try:
        tables = {"/proc/net/tcp6": ""} if ":" in peer[0] else {"/proc/net/tcp": "", "/proc/net/tcp6": _MAPPED}
        for table, prefix in tables.items():
            user = _find_user(table, *(_write_address(prefix + host, port) for host, port in (peer[:2], own[:2])))
            if user is not None:
                return user
    except (OSError, ValueError, TypeError, IndexError):
        return None
    return None


def _find_user(table: str, local: str, remote: str) -> int | None:
    """Return the uid of the socket with these addresses; None when the table has none.

    Raises:
        OSError, ValueError, IndexError: this kernel has no such table.
    """
    with open(table, encoding="ascii") as rows:
        next(rows, None)
        for row in rows:
            fields = row.split(maxsplit=8)
            if (fields[1], fields[2]) == (local, remote):
                return int(fields[7])
    return None


def _write_address(host: str, port: int) -> str:
    """Return an address as a row has it: words of the machine's own byte order in hexadecimal."""
    family = socket.AF_INET if ip_address(host).version == 4 else socket.AF_INET6
    packed = socket.inet_pton(family, host)
    words = (struct.unpack("=I", packed[at : at + 4])[0] for at in range(0, len(packed), 4))
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"
