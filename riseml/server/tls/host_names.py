"""The host names and addresses under which a team's server answers."""

from __future__ import annotations

import socket
from ipaddress import ip_address

from riseml.spec.server.types import ServerConfig

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def choose_names(config: ServerConfig) -> tuple[str, ...]:
    """Return the names of server.yml, or those of this machine, in lower case; the first one is for people."""
    if config.names:
        return config.names
    host = config.listen.host
    own = () if config.listen.is_wildcard else (host,)
    return tuple(dict.fromkeys(name for name in (*own, *_list_machine_names(), *_LOOPBACK) if name))


def find_own_address(config: ServerConfig) -> str:
    """Return the URL of the server on this machine. Servers of several machines share a server.yml: its first name of
    this machine counts, else the first name.
    """
    names = choose_names(config)
    own = {config.listen.host, *_list_machine_names()}
    name = next((name for name in names if name in own), names[0])
    return f"https://{write_host(name)}:{config.listen.port}"


def _list_machine_names() -> tuple[str, ...]:
    return socket.getfqdn().lower(), socket.gethostname().lower()


def write_host(name: str) -> str:
    """Return a name as an address has it: IPv6 in brackets."""
    try:
        return f"[{name}]" if ip_address(name).version == 6 else name
    except ValueError:
        return name
