"""Which members of a Docker Swarm should manage it. Pure: the nodes of a swarm in, the next change of a role out.

A swarm decides by the majority of its managers. One manager is enough for two hosts, because two managers survive the
loss of neither. Three survive the loss of one, and five the loss of two.

Each riseml server labels the nodes of its pool (`CLAIM`), so that servers which share hosts agree on the number of
hosts, and a swarm with a manager that no server has labelled keeps the managers that its administrator chose.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from riseml.base.names import HostName
from riseml.base.records import dataclass

CLAIM = "riseml.server."
"""The beginning of a node's label. The rest is the id of a server, and the value is the host's name in its pool."""

_FEW = 3
_MANY = 7
"""Hosts from which on a swarm has three managers, and five."""


@dataclass(frozen=True, slots=True)
class SwarmNode:
    """One member of a swarm, as its managers see it."""

    id: str
    manager: bool  # its role is to manage; one without a vote gets it by itself once it answers
    has_vote: bool  # it is counted when the managers decide
    answers: bool  # the other managers reach it
    leader: bool = False
    claims: tuple[tuple[str, HostName], ...] = ()  # the id of each server that uses it, and its name there

    def find_name(self, server: str) -> HostName | None:
        """Return the name of this node in the pool of a server; None: the server has not labelled it."""
        return dict(self.claims).get(server)


@dataclass(frozen=True, slots=True)
class RoleChange:
    """A change of one node's role."""

    node: str  # its id
    manager: bool  # the new role


def parse_node(row: Mapping[str, Any]) -> SwarmNode:
    """Return a node from the answer of `GET /nodes` (Docker Engine API 1.41)."""
    vote = row.get("ManagerStatus")
    labels = row["Spec"].get("Labels") or {}
    ready = (row.get("Status") or {}).get("State") == "ready"
    return SwarmNode(
        id=str(row["ID"]),
        manager=row["Spec"].get("Role") == "manager",
        has_vote=vote is not None,
        answers=ready and (vote is None or vote.get("Reachability") == "reachable"),
        leader=bool(vote and vote.get("Leader")),
        claims=tuple(
            (str(key).removeprefix(CLAIM), HostName(str(name)))
            for key, name in sorted(labels.items())
            if str(key).startswith(CLAIM)
        ),
    )


def count_managers(hosts: int) -> int:
    """Return how many managers a swarm of this many hosts should have."""
    return 1 if hosts < _FEW else 3 if hosts < _MANY else 5


def find_next_change(
    nodes: Sequence[SwarmNode],
    *,
    leaving: Iterable[str] = (),
    creators: Iterable[str] = (),
    given_up: Iterable[str] = (),
) -> RoleChange | None:
    """Return the next change that brings a swarm to the right managers; None: there is nothing to do, or none may.

    Args:
        nodes: every node of the swarm, which has a leader.
        leaving: ids of nodes that must not manage any more.
        creators: ids of nodes that made networks which still exist: only they can remove them, as managers.
        given_up: ids of nodes that count as dead when they do not answer; the others may come back soon.
    """
    going = frozenset(leaving)
    # a manager without a vote is one from before a new majority was made; the swarm refuses to change its role
    managers = [node for node in nodes if node.manager and node.has_vote]
    is_arranged = all(node.claims or node.id in going for node in managers)
    if is_arranged:
        chosen = _choose_managers(nodes, going, frozenset(creators), frozenset(given_up))
    else:  # no server of riseml has labelled one of the managers: only the nodes that leave change their role
        chosen = {node.id for node in managers} - going
    return _find_change(nodes, managers, chosen, going, frozenset(creators))


def _find_change(
    nodes: Sequence[SwarmNode],
    managers: Sequence[SwarmNode],
    chosen: set[str],
    going: frozenset[str],
    creators: frozenset[str],
) -> RoleChange | None:
    """Return the next change: dead managers out, new managers in, then the others out, the leader last."""
    surplus = sorted(
        (node for node in managers if node.id not in chosen and keeps_majority(managers, node.id)),
        key=lambda node: (node.id not in going, node.leader, node.id),
    )
    dead = [node.id for node in surplus if not node.answers]
    missing = [node.id for node in nodes if node.id in chosen and not node.manager]
    if dead:
        return RoleChange(dead[0], manager=False)
    if missing:
        return RoleChange(missing[0], manager=True)
    movable = [node.id for node in surplus if node.id in going]
    if not any(node.manager and not node.has_vote and node.answers for node in nodes):
        # a manager that waits for its vote gets it from one of the managers
        movable += [node.id for node in surplus if node.id not in going and node.id not in creators]
    return RoleChange(movable[0], manager=False) if movable else None


def keeps_majority(managers: Iterable[SwarmNode], without: str) -> bool:
    """Return True when more than half of the managers answer after one of them is not a manager any more."""
    left = [node for node in managers if node.id != without]
    return 2 * sum(node.answers for node in left) > len(left)


def _choose_managers(
    nodes: Sequence[SwarmNode], going: frozenset[str], creators: frozenset[str], given_up: frozenset[str]
) -> set[str]:
    """Return the ids of the nodes that should manage the swarm: the present managers first, dead ones last."""
    hosts = [node for node in nodes if node.claims and node.id not in going]
    able = [node for node in hosts if (node.has_vote if node.manager else node.answers)]
    able.sort(key=lambda node: _rank_candidate(node, creators, given_up))
    chosen = able[: count_managers(len(hosts))]
    if len(chosen) % 2 == 0:
        del chosen[-1:]
    return {node.id for node in chosen}


def _rank_candidate(node: SwarmNode, creators: frozenset[str], given_up: frozenset[str]) -> tuple[int, bool, str]:
    """Return a sort key: the leader, the managers that answer, those that may come back, then the other nodes."""
    if node.manager and node.answers:
        return (0 if node.leader else 1), node.id not in creators, node.id
    if node.manager and node.id not in given_up:
        return 2, True, node.id
    return (3 if node.answers else 4), True, node.id
