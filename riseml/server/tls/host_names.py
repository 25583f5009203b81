"""The host names and addresses under which a team's server answers."""

from __future__ import annotations

import socket

from riseml.spec.server.types import ServerConfig

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def choose_names(config: ServerConfig) -> tuple[str, ...]:
    """Return the names of server.yml, or those of this machine, in lower case; the first one is for people."""
    if config.names:
        return config.names
    host = config.listen.host
    own = () if config.listen.is_wildcard else (host,)
    machine = (socket.getfqdn().lower(), socket.gethostname().lower())
    return tuple(dict.fromkeys(name for name in (*own, *machine, *_LOOPBACK) if name))
