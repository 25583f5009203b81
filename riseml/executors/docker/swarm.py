"""The Docker Swarm of a pool's hosts: membership, TLS between its members, and networks across them.

riseml uses only its networks, and creates the containers itself: a swarm places services one by one, without gangs.
"""

from __future__ import annotations

import enum
import socket
from collections.abc import Mapping
from typing import Any

from riseml.errors import Refused, UsageError
from riseml.executors.transports.engine_client import Engine
from riseml.names import HostName

_MANAGERS = 3  # three managers survive the loss of one; two do not, because a majority of two is both


class Membership(enum.Enum):
    """What `join_swarm` did to a host."""

    CREATED = "created"
    JOINED = "joined"
    MEMBER = "member"  # nothing: it is in the swarm already


def join_swarm(engines: Mapping[HostName, Engine], addresses: Mapping[HostName, str]) -> dict[HostName, Membership]:
    """Put all these hosts into one swarm; create it when no host is in one.

    Args:
        engines: the hosts; all of them must answer.
        addresses: where the hosts reach each other.

    Raises:
        UsageError: a host has no address.
        Refused: the hosts are in two swarms, or in a swarm without a manager among them.
        Unreachable: an engine does not answer.
        EngineError: an engine refuses.
    """
    infos = {name: _read_swarm(engine) for name, engine in engines.items()}
    members = [name for name, info in infos.items() if info.get("LocalNodeState") == "active"]
    managers = [name for name in members if infos[name].get("ControlAvailable")]
    _check_one_swarm(infos, members, managers)
    found = dict.fromkeys(members, Membership.MEMBER)
    if not members:
        first = next(iter(engines))
        with engines[first].api(patient=True) as api:
            api.init_swarm(advertise_addr=_resolve_address(first, addresses))
        found[first] = Membership.CREATED
        managers = [first]
    _join_others(engines, addresses, managers, found)
    return found


def _join_others(
    engines: Mapping[HostName, Engine],
    addresses: Mapping[HostName, str],
    managers: list[HostName],
    found: dict[HostName, Membership],
) -> None:
    """Let every host that `found` does not have join the first manager, and add it to `found`."""
    with engines[managers[0]].api() as api:
        tokens = api.inspect_swarm()["JoinTokens"]
    missing = (_MANAGERS if len(engines) >= _MANAGERS else 1) - len(managers)
    for place, name in enumerate([name for name in engines if name not in found]):
        token = tokens["Manager" if place < missing else "Worker"]
        own = _resolve_address(name, addresses)
        with engines[name].api(patient=True) as api:
            api.join_swarm([_resolve_address(managers[0], addresses)], token, advertise_addr=own)
        found[name] = Membership.JOINED


def _read_swarm(engine: Engine) -> dict[str, Any]:
    with engine.api() as api:
        found: dict[str, Any] = api.info().get("Swarm") or {}
    return found


def _check_one_swarm(
    infos: Mapping[HostName, dict[str, Any]], members: list[HostName], managers: list[HostName]
) -> None:
    known = {manager["NodeID"] for name in managers for manager in infos[name].get("RemoteManagers") or []}
    for name in members:
        if not managers:
            raise Refused(
                f"host {name} is in a swarm that no host of the pool manages",
                f"run `docker swarm leave` on {name}, then try again",
            )
        theirs = {manager["NodeID"] for manager in infos[name].get("RemoteManagers") or []}
        if not theirs & known or not _have_one_cluster(infos, managers):
            raise Refused(
                f"the hosts are in different swarms: {', '.join(members)}",
                "run `docker swarm leave --force` on those that should change, then try again",
            )


def _have_one_cluster(infos: Mapping[HostName, dict[str, Any]], managers: list[HostName]) -> bool:
    return len({(infos[name].get("Cluster") or {}).get("ID") for name in managers}) == 1


def _resolve_address(name: HostName, addresses: Mapping[HostName, str]) -> str:
    """Return a host's address as an IP address: a swarm accepts no names.

    Raises:
        UsageError: the host has no address, or it cannot be resolved.
    """
    address = addresses.get(name)
    if not address:
        raise UsageError(f"host {name} has no address that the others reach", f"add `address:` to {name} in pool.yml")
    try:
        return socket.gethostbyname(address)
    except OSError as error:
        raise UsageError(
            f"the address {address} of host {name} cannot be resolved: {error.strerror or error}",
            "write the IP address in pool.yml",
        ) from error
