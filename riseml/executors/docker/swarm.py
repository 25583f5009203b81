"""The Docker Swarm of a pool's hosts: membership, TLS between its members, and networks across them.

riseml uses only its networks, and creates the containers itself: a swarm places services one by one, without gangs.
"""

from __future__ import annotations

import enum
import socket
import threading
from collections.abc import Mapping
from typing import Any

from riseml.errors import EngineError, Refused, Unreachable, UsageError
from riseml.executors.transports.engine_client import Engine
from riseml.names import HostName

_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds before the next try: a swarm that has just got a manager may elect its leader, and refuses until then."""

_MANAGERS = 3  # three managers survive the loss of one; two do not, because the majority of two is two


class Membership(enum.Enum):
    """What `join_swarm` did to a host."""

    CREATED = "created"
    JOINED = "joined"
    MEMBER = "member"  # nothing to do: the host is in the swarm already


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
    found: dict[HostName, Membership] = {}
    for pause in _PAUSES:
        try:
            _join_missing(engines, addresses, found)
        except EngineError as error:
            if error.permanent:
                raise
            threading.Event().wait(pause)
        else:
            return found
    _join_missing(engines, addresses, found)
    return found


def _join_missing(
    engines: Mapping[HostName, Engine], addresses: Mapping[HostName, str], found: dict[HostName, Membership]
) -> None:
    """Let the hosts without a swarm join the swarm of the others, and add the step of each host to `found`."""
    infos = {name: _read_swarm(engine) for name, engine in engines.items()}
    members = [name for name, info in infos.items() if info.get("LocalNodeState") == "active"]
    joining = [name for name, info in infos.items() if info.get("LocalNodeState") == "pending"]
    managers = [name for name in members if infos[name].get("ControlAvailable")]
    if joining and not members:
        raise Refused(f"host {joining[0]} is still joining a swarm", "try again in some seconds")
    check_one_swarm(infos, members, managers)
    for name in [*members, *joining]:
        found.setdefault(name, Membership.MEMBER)
    if not members:
        first = next(iter(engines))
        with engines[first].api(patient=True) as api:
            api.init_swarm(advertise_addr=_resolve_address(first, addresses))
        found[first] = Membership.CREATED
        managers = [first]
    _join_others(engines, addresses, managers, found)


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
        _join_one(engines[name], _resolve_address(managers[0], addresses), token, own)
        found[name] = Membership.JOINED


def _join_one(engine: Engine, manager: str, token: str, own: str) -> None:
    """Let a host join the swarm of a manager.

    A busy engine answers after 20 s that it continues in the background. The host counts as a member then, too.
    """
    try:
        with engine.api(patient=True) as api:
            api.join_swarm([manager], token, advertise_addr=own)
    except Unreachable:
        if _read_swarm(engine).get("LocalNodeState") not in ("active", "pending"):
            raise


def _read_swarm(engine: Engine) -> dict[str, Any]:
    with engine.api() as api:
        found: dict[str, Any] = api.info().get("Swarm") or {}
    return found


def check_one_swarm(
    infos: Mapping[HostName, dict[str, Any]], members: list[HostName], managers: list[HostName]
) -> None:
    """Check that these members are in one swarm.

    Args:
        infos: what `docker info` says of the swarm of each host.
        members: the hosts that are active members of a swarm.
        managers: those of them that manage it.

    Raises:
        Refused: they are in two swarms, or no manager is among them.
    """
    known = {node for name in managers for node in _list_managers(infos[name])}
    for name in members:
        if not managers:
            raise Refused(
                f"host {name} is in a swarm that no host of the pool manages",
                f"run `docker swarm leave` on {name}, then try again",
            )
        if not _list_managers(infos[name]) & known or not _have_one_cluster(infos, managers):
            raise Refused(
                f"the hosts are in different swarms: {', '.join(members)}",
                "run `docker swarm leave --force` on those that should change, then try again",
            )


def _list_managers(info: dict[str, Any]) -> set[str]:
    """Return the ids of the managers that a member of a swarm knows."""
    return {manager["NodeID"] for manager in info.get("RemoteManagers") or []}


def _have_one_cluster(infos: Mapping[HostName, dict[str, Any]], managers: list[HostName]) -> bool:
    """Return True when all managers belong to one swarm.

    A manager that has just joined does not know the id of its swarm yet, but knows the manager that it joined.
    """
    clusters = {name: (infos[name].get("Cluster") or {}).get("ID") for name in managers}
    known = {node for name, cluster in clusters.items() if cluster for node in _list_managers(infos[name])}
    new = [name for name, cluster in clusters.items() if not cluster] if known else []
    return len({*filter(None, clusters.values())}) <= 1 and all(_list_managers(infos[name]) & known for name in new)


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
