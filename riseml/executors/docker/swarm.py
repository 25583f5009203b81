"""The Docker Swarm of a pool's hosts: membership, its managers, and a new majority when too few of them are left.

riseml uses only its networks, and creates the containers itself: a swarm places services one by one, without gangs.
Which members manage the swarm is decided in `swarm_plan`.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

import docker

from riseml.base.errors import EngineError, Refused, Unreachable, UsageError
from riseml.base.names import HostName
from riseml.base.records import dataclass
from riseml.executors.docker import labels
from riseml.executors.docker.leader_watch import NOT_A_MANAGER
from riseml.executors.docker.swarm_plan import CLAIM, RoleChange, SwarmNode, find_next_change, parse_node
from riseml.executors.swarm_changes import Departure, Membership, Recovery
from riseml.executors.transports.engine_client import Engine

_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds before the next try: a swarm that has just got a manager may elect its leader, and refuses until then."""

_MOST_CHANGES = 30  # changes of roles in one arrangement
_EFFECT_WITHIN = 20.0  # seconds within which a swarm carries out a change of a role
_LOOK_AGAIN = 0.3  # seconds
_STARTING = 600.0  # seconds: a younger container or network of another server may be about to be used
_LATE = "context deadline exceeded"  # what an engine says that gave up waiting for itself
_WORK = (labels.JOB, labels.BUILD_SERVER)  # labels of the containers of jobs and of builds
_AT_REST = ("created", "exited", "dead")  # states of a container in which nothing of it runs

RECOVER_HINT = "start the other managers: more than half must reach each other; or `riseml pool recover`"


@dataclass(frozen=True, slots=True)
class SwarmHost:
    """A host of the pool with its engine."""

    name: HostName
    engine: Engine
    address: str | None  # where the other hosts reach it, from pool.yml


Answer = TypeVar("Answer")

Infos = dict[HostName, dict[str, Any]]
"""What `docker info` says of the swarm of each host that answers."""


def read_swarms(hosts: Sequence[SwarmHost]) -> Infos:
    """Return what each host that answers knows of its swarm. The hosts are asked at the same time."""

    def read(host: SwarmHost) -> dict[str, Any] | None:
        try:
            return _read_swarm(host.engine)
        except EngineError:
            raise
        except Unreachable:
            return None

    with ThreadPoolExecutor(max(1, len(hosts)), thread_name_prefix="swarm") as workers:
        answers = list(workers.map(read, hosts))
    return {host.name: answer for host, answer in zip(hosts, answers, strict=True) if answer is not None}


def _read_settled(hosts: Sequence[SwarmHost]) -> Infos:
    """Return what the members of a swarm know of it. A host that is just joining gets some seconds for that first."""
    for pause in (*_PAUSES[:4], None):
        infos = read_swarms(hosts)
        if pause is None or not any(info.get("LocalNodeState") == "pending" for info in infos.values()):
            break
        threading.Event().wait(pause)
    return infos


def join_swarm(hosts: Sequence[SwarmHost], server: str) -> dict[HostName, Membership]:
    """Put all hosts that answer into one swarm with the right managers; create it when no host is in one.

    Args:
        hosts: every host of the pool, also those that do not answer.
        server: id of this server.

    Raises:
        UsageError: a host has no address.
        Refused: the hosts are in two swarms, in one without a leader or a manager among them, or a host that does not
            answer may be in one.
        Unreachable: no engine answers.
        EngineError: an engine refuses.
    """
    memberships: dict[HostName, Membership] = {}
    for pause in (*_PAUSES, None):
        try:
            _join_missing(hosts, memberships)
            break
        except EngineError as error:
            if error.permanent or pause is None:
                raise
            threading.Event().wait(pause)
    members = [host for host in hosts if memberships[host.name] is not Membership.SILENT]
    names = frozenset(host.name for host in hosts)
    changed = SwarmManagement(members, server, names).arrange()  # lets those that dropped out join again, too
    return {**memberships, **{name: how for name, how in changed.items() if memberships.get(name) is Membership.MEMBER}}


def _join_missing(hosts: Sequence[SwarmHost], memberships: dict[HostName, Membership]) -> None:
    """Let the hosts without a swarm join the swarm of the others, and add the step of each host to `memberships`."""
    infos = read_swarms(hosts)
    silent = [host.name for host in hosts if host.name not in infos]
    _check_joinable(infos, silent)
    memberships.update(dict.fromkeys(silent, Membership.SILENT))
    for state in ("active", "pending", "error"):
        for name in _list_in_state(infos, state):
            memberships.setdefault(name, Membership.MEMBER)
    answering = [host for host in hosts if host.name in infos]
    manager = next((host for host in answering if _has_leader(infos[host.name])), None)
    if manager is None:
        manager = answering[0]
        with manager.engine.api(patient=True) as api:
            api.init_swarm(advertise_addr=_resolve_address(manager))
        memberships[manager.name] = Membership.CREATED
    with manager.engine.api() as api:
        token = api.inspect_swarm()["JoinTokens"]["Worker"]
    for host in answering:
        if host.name not in memberships:
            _join_one(host, _resolve_address(manager, infos[manager.name]), token)
            memberships[host.name] = Membership.JOINED


def _check_joinable(infos: Infos, silent: Sequence[HostName]) -> None:
    """Check that the hosts that answer are in one swarm, or that none of them is and one may be created.

    Raises:
        Unreachable: no host answers.
        Refused: as `join_swarm`.
    """
    if not infos:
        raise Unreachable("no host of the pool answers", "`riseml pool check` says why")
    members = _list_in_state(infos, "active")
    joining = _list_in_state(infos, "pending")
    if joining and not members:
        raise Refused(f"host {joining[0]} is still joining a swarm", "try again in some seconds")
    check_one_swarm(infos, members, silent)
    if silent and not members:
        message = f"no host that answers is in a swarm, and {_join_names(silent)} may be: it does not answer"
        raise Refused(message, f"start it, or take it out of the pool: `riseml pool remove {silent[0]}`")


def _list_in_state(infos: Infos, state: str) -> list[HostName]:
    """Return the hosts whose engine gives its node this state: `active`, `pending`, `error` or `inactive`."""
    return [name for name, info in infos.items() if info.get("LocalNodeState") == state]


def _join_one(host: SwarmHost, manager: str, token: str) -> None:
    """Let a host join the swarm of a manager.

    A busy engine answers after 20 s that it continues in the background. The host counts as a member then, too.
    """
    own = _resolve_address(host)
    try:
        with host.engine.api(patient=True) as api:
            api.join_swarm([manager], token, advertise_addr=own)
    except Unreachable:
        if _read_swarm(host.engine).get("LocalNodeState") not in ("active", "pending"):
            raise


class SwarmManagement:
    """Changes which members manage the swarm, and takes members out of it.

    Args:
        hosts: those that answer.
        server: id of this server.
        pool: names of all hosts of the pool.
        patient: names of hosts that do not answer and may come back soon: none of them loses its role.
    """

    def __init__(
        self,
        hosts: Sequence[SwarmHost],
        server: str,
        pool: frozenset[HostName],
        patient: frozenset[HostName] = frozenset(),
    ) -> None:
        self._server = server
        self._pool = pool
        self._patient = patient
        self._engines = {host.name: host.engine for host in hosts}
        answers = _read_settled(hosts)
        infos = {name: info for name, info in answers.items() if info.get("LocalNodeState") == "active"}
        self._failed = _list_in_state(answers, "error")
        self._ids = {name: str(info["NodeID"]) for name, info in infos.items()}
        self._managers = [name for name, info in infos.items() if _has_leader(info)]

    @property
    def has_leader(self) -> bool:
        """True when a host can change the swarm."""
        return bool(self._managers)

    def arrange(self, leaving: Collection[str] = ()) -> dict[HostName, Membership]:
        """Give the swarm the right managers, and return the hosts whose roles changed.

        Args:
            leaving: ids of nodes that must not manage any more.

        Raises:
            EngineError: the swarm has no leader, or does not carry out a change.
        """
        self._claim_nodes()
        changed: dict[HostName, Membership] = {}
        for failed in self._failed:
            self._join_again(failed, "Worker")
            changed[failed] = Membership.JOINED
        self._failed = []
        for _ in range(_MOST_CHANGES):
            nodes = self.list_nodes()
            given_up = [node.id for node in nodes if node.find_name(self._server) not in self._patient]
            going = {*leaving, *(node.id for node in nodes if self._has_left(node))}
            creators = self._list_creators(nodes)
            change = find_next_change(nodes, leaving=going, creators=creators, given_up=given_up)
            if change is None:
                break
            self._change_role(change)
            name = next((node.find_name(self._server) for node in nodes if node.id == change.node), None)
            if name is not None:
                changed[name] = Membership.PROMOTED if change.manager else Membership.DEMOTED
        self._drop_claims()
        return changed

    def list_nodes(self) -> list[SwarmNode]:
        """Return every node of the swarm. A swarm notices late that a host is dead; this server may know it already."""
        nodes = self._ask(lambda api: [parse_node(node) for node in api.nodes()])
        silent = self._pool - self._ids.keys()
        return [replace(node, answers=False) if node.find_name(self._server) in silent else node for node in nodes]

    def take_out(self, name: HostName) -> Departure:
        """Take a host out of the swarm: it manages nothing first, and then leaves.

        Raises:
            Refused: without it, too few managers would be left, or they have no leader now.
            EngineError: an engine refuses.
        """
        if not self._managers:
            raise Refused("the Docker swarm of the pool has no leader, so that no host can leave it", RECOVER_HINT)
        self._claim_nodes()
        nodes = self.list_nodes()
        node = next((candidate for candidate in nodes if candidate.find_name(self._server) == name), None)
        if node is None or len(nodes) == 1:
            return Departure.NONE
        if name in self._ids and self._is_shared(self._engines[name]):
            self._label_node(node.id, None)
            return Departure.SHARED
        if self._ask(lambda api: api.services()):
            return Departure.SERVICES
        self.arrange(leaving=[node.id])
        node = next(candidate for candidate in self.list_nodes() if candidate.id == node.id)
        if node.manager and node.has_vote:
            message = f"without {name}, the Docker swarm of the pool would lose the majority of its managers"
            raise Refused(message, "start the hosts that do not answer, or remove them first; --force only removes it")
        departure = Departure.REMOVED
        if name in self._ids:
            leave_swarm(self._engines[name])
            self._managers = [other for other in self._managers if other != name]
            departure = Departure.LEFT
        self._ask(lambda api: api.remove_node(node.id, force=True))
        return departure

    def _is_shared(self, engine: Engine) -> bool:
        """Return True when a job or a build of another riseml server runs on a host, or is about to start there.

        What a server that is gone has left there does not count, nor a helper: no leaving of a swarm disturbs them.
        """
        with engine.api() as api:
            containers = [row for mark in _WORK for row in api.containers(all=True, filters={"label": mark})]
            networks = api.networks(filters={"label": labels.EXPERIMENT})
        # helpers run in images of environments, whose label of a build they have, too
        foreign_containers = [
            row
            for row in containers
            if _find_server(row) not in ("", self._server) and not labels.is_helper(row["Labels"])
        ]
        creation_times = [row["Created"] for row in foreign_containers if row["State"] == "created"]
        creation_times += [
            datetime.fromisoformat(row["Created"]).timestamp()
            for row in networks
            if row.get("Scope") != "swarm" and _find_server(row) != self._server
        ]
        is_starting = any(time.time() - moment < _STARTING for moment in creation_times)
        return is_starting or any(row["State"] not in _AT_REST for row in foreign_containers)

    def _claim_nodes(self) -> None:
        """Label the nodes of the hosts with their names in the pool."""
        if not self._managers:
            raise EngineError("the Docker swarm of the pool has no leader", RECOVER_HINT)
        names = {identity: name for name, identity in self._ids.items()}
        for node in self.list_nodes():
            name = names.get(node.id)
            if name is not None and node.find_name(self._server) != name:
                self._label_node(node.id, name)

    def _drop_claims(self) -> None:
        """Take the label of this server from nodes that are no longer in its pool, and manage nothing."""
        for node in self.list_nodes():
            if self._has_left(node) and not node.manager:
                self._label_node(node.id, None)

    def _has_left(self, node: SwarmNode) -> bool:
        """Return True when a node was in the pool of this server alone, and is not any more.

        A host that has left the swarm and joined it again has a new node, and its old one is dead.
        """
        name = node.find_name(self._server)
        if name is None or any(server != self._server for server, _ in node.claims):
            return False
        return name not in self._pool or self._ids.get(name, node.id) != node.id

    def _list_creators(self, nodes: Sequence[SwarmNode]) -> list[str]:
        """Return the ids of the nodes that made networks which still exist."""
        claims = {claim: node.id for node in nodes for claim in node.claims}
        networks = self._ask(lambda api: api.networks(filters={"driver": "overlay", "label": labels.HOST}))
        marks = [network.get("Labels") or {} for network in networks]
        network_claims = {(mark.get(labels.SERVER, ""), HostName(mark.get(labels.HOST, ""))) for mark in marks}
        return [identity for claim, identity in claims.items() if claim in network_claims]

    def _change_role(self, change: RoleChange) -> None:
        """Change the role of a node, and wait until the swarm has done it.

        Raises:
            EngineError: it was not done in time.
        """
        name = next((name for name, identity in self._ids.items() if identity == change.node), None)
        other_managers = [other for other in self._managers if other != name]
        self._managers = other_managers or self._managers
        if change.manager and name is not None and not _uses_networks(self._engines[name]):
            self._join_as_manager(name)
        else:
            self._change_in_place(change)
        if change.manager and name is not None:
            self._managers.append(name)

    def _join_as_manager(self, name: HostName) -> None:
        """Let a member leave the swarm and join it as a manager.

        A member that is promoted in place asks the managers that it knows for its vote. The address through which it
        joined is one of them for good: when that host manages nothing any more, its engine may never get its vote, and
        drops out of the swarm (seen with Engine 20.10).
        """
        self._join_again(name, "Manager")
        self._await_change(RoleChange(self._ids[name], manager=True))

    def _join_again(self, name: HostName, role: str) -> None:
        """Let a host leave the swarm and join it again.

        Args:
            name: the host.
            role: `Manager` or `Worker`.
        """
        engine = self._engines[name]
        former = [node for node in self.list_nodes() if node.find_name(self._server) == name]
        for node in former:
            if node.manager and node.has_vote:
                self._change_in_place(RoleChange(node.id, manager=False))
        token = self._ask(lambda api: api.inspect_swarm()["JoinTokens"][role])
        manager = self._ids[self._managers[0]]
        address = self._ask(lambda api: str(api.inspect_node(manager)["ManagerStatus"]["Addr"]))
        own = _read_swarm(engine).get("NodeAddr")
        leave_swarm(engine)
        with engine.api(patient=True) as api:
            api.join_swarm([address], token, advertise_addr=own)
        self._ids[name] = identity = str(_read_swarm(engine)["NodeID"])
        for node in former:
            self._ask(partial(docker.APIClient.remove_node, node_id=node.id, force=True))
            for server, title in node.claims:
                self._label_node(identity, title, server)
        self._label_node(identity, name)

    def _change_in_place(self, change: RoleChange) -> None:
        """Change the role of a node that stays in the swarm."""
        role = "manager" if change.manager else "worker"
        self._update_node(change.node, lambda _: {"Role": role})
        self._await_change(change)

    def _await_change(self, change: RoleChange) -> None:
        """Wait until the swarm has changed a role.

        Raises:
            EngineError: it was not done in time.
        """
        end = time.monotonic() + _EFFECT_WITHIN
        while not self._has_changed(change):
            if time.monotonic() > end:
                verb = "promote" if change.manager else "demote"
                raise EngineError(f"the swarm did not {verb} its node {change.node} in {_EFFECT_WITHIN:.0f} s")
            threading.Event().wait(_LOOK_AGAIN)

    def _has_changed(self, change: RoleChange) -> bool:
        """Return True when the swarm has changed a role, and the host itself knows it."""
        node = next((candidate for candidate in self.list_nodes() if candidate.id == change.node), None)
        if node is not None and not (node.has_vote and node.answers if change.manager else not node.has_vote):
            return False
        engines = [self._engines[name] for name, identity in self._ids.items() if identity == change.node]
        return all(_manages(engine) == change.manager for engine in engines)

    def _label_node(self, node: str, name: HostName | None, server: str | None = None) -> None:
        """Set the label of a server, by default this one, on a node; without a name remove it."""
        label = CLAIM + (server or self._server)

        def relabel(spec: dict[str, Any]) -> dict[str, Any]:
            node_labels = {key: value for key, value in (spec.get("Labels") or {}).items() if key != label}
            return {"Labels": node_labels if name is None else {**node_labels, label: name}}

        self._update_node(node, relabel)

    def _update_node(self, node: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Change the specification of a node; try again when another client changed it at the same moment."""
        for pause in (0.2, 0.5, 1.0, None):
            try:
                self._ask(partial(_rewrite_node, node=node, change=change))
                return
            except EngineError as error:
                if "out of sequence" not in error.message or pause is None:
                    raise
                threading.Event().wait(pause)

    def _ask(self, ask: Callable[[docker.APIClient], Answer]) -> Answer:
        """Return the answer of the first manager; try again while the swarm elects a leader.

        Raises:
            EngineError: no manager has a leader.
        """
        for pause in _PAUSES:
            try:
                with self._engines[self._managers[0]].api() as api:
                    return ask(api)
            except Unreachable as error:
                if isinstance(error, EngineError) and not lacks_leader(error.message):
                    raise
                threading.Event().wait(pause)
                self._managers.append(self._managers.pop(0))
        with self._engines[self._managers[0]].api() as api:
            return ask(api)


def _find_server(row: Mapping[str, Any]) -> str:
    """Return the id of the server that made a container or a network; empty: none did."""
    marks = row.get("Labels") or {}
    return str(marks.get(labels.SERVER) or marks.get(labels.BUILD_SERVER) or "")


def _uses_networks(engine: Engine) -> bool:
    """Return True when a container of an engine is connected to a network across hosts."""
    with engine.api() as api:
        across = {network["Name"] for network in api.networks(filters={"driver": "overlay"})}
        return any(across & {*row["NetworkSettings"]["Networks"]} for row in api.containers())


def _rewrite_node(api: docker.APIClient, node: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Change what `change` returns in the specification of a node, unless another client changes it meanwhile."""
    inspection = api.inspect_node(node)
    spec: Any = {**inspection["Spec"], **change(inspection["Spec"])}
    api.update_node(node, inspection["Version"]["Index"], spec)


def plan_recovery(hosts: Sequence[SwarmHost], chosen: HostName | None = None) -> Recovery:
    """Return how the swarm of these hosts can be recovered; nothing changes.

    Args:
        hosts: every host of the pool.
        chosen: the host that becomes the manager; None: the first that can.

    Raises:
        Refused: the swarm has a leader, or no host that answers is in a swarm, or the chosen one cannot manage it.
    """
    infos = read_swarms(hosts)
    members = [name for name, info in infos.items() if info.get("LocalNodeState") in ("active", "pending")]
    managers = [name for name in members if infos[name].get("ControlAvailable")]
    leaders = [name for name in managers if _has_leader(infos[name])]
    if leaders:
        hint = "`riseml pool join` repairs what it finds"
        raise Refused(f"the Docker swarm of the pool has a leader, which {leaders[0]} knows: nothing is lost", hint)
    able = managers or members
    if not able:
        raise Refused("no host that answers is in a swarm", "`riseml pool join` makes one")
    if chosen is not None and chosen not in able:
        why = "no manager of the swarm that answers" if managers else "no member of the swarm that answers"
        raise Refused(f"host {chosen} is {why}", f"choose one of: {_join_names(able)}")
    lost = tuple(host.name for host in hosts if host.name not in infos)
    return Recovery(chosen or able[0], bool(managers), tuple(members), lost)


def recover_swarm(hosts: Sequence[SwarmHost], server: str, recovery: Recovery) -> dict[HostName, Membership]:
    """Give the swarm a new majority: one manager that keeps its networks and members, or a new swarm.

    Other managers that live notice within a minute, and become members; the server arranges the managers then.

    Raises:
        EngineError: an engine refuses.
        RisemlError: as `join_swarm`.
    """
    named = {host.name: host for host in hosts}
    if not recovery.keeps_swarm:
        for name in recovery.members:
            leave_swarm(named[name].engine)
        memberships = join_swarm([host for host in hosts if host.name not in recovery.lost], server)
        return {**memberships, **dict.fromkeys(recovery.lost, Membership.SILENT)}
    engine = named[recovery.leader].engine
    with engine.api(patient=True) as api:
        own = (api.info().get("Swarm") or {}).get("NodeAddr") or _resolve_address(named[recovery.leader])
        api.init_swarm(advertise_addr=own, force_new_cluster=True)
    for pause in (*_PAUSES, *_PAUSES):
        if _manages(engine):
            break
        threading.Event().wait(pause)
    members = {name: Membership.MEMBER for name in recovery.members}
    return {**members, **dict.fromkeys(recovery.lost, Membership.SILENT), recovery.leader: Membership.RECOVERED}


def leave_swarm(engine: Engine) -> None:
    """Let an engine leave its swarm, also one that has not noticed yet that it manages nothing.

    An engine that cannot end its part in the swarm within 15 s refuses. It takes part in nothing from then on, says
    that it does, and leaves when it is asked once more (seen with Engine 20.10 that attached a container while it lost
    the other managers).

    Raises:
        EngineError: the engine refuses.
    """
    for last in (False, True):
        try:
            with engine.api(patient=True) as api:
                api.leave_swarm(force=True)
        except EngineError as error:
            if last or _LATE not in error.message:
                raise
        else:
            return


def lacks_leader(message: str) -> bool:
    """Return True for the words with which a manager, or a former one, says that it cannot ask its swarm."""
    phrases = ("does not have a leader", "DeadlineExceeded", "control.sock", NOT_A_MANAGER)
    return any(words in message for words in phrases)


def _manages(engine: Engine) -> bool:
    """Return True when an engine knows that it manages its swarm, and can ask it."""
    return _has_leader(_read_swarm(engine))


def _has_leader(info: Mapping[str, Any]) -> bool:
    """Return True for a manager that can ask its swarm (Docker Engine API 1.41, `SystemInfo.Swarm`)."""
    return bool(info.get("ControlAvailable")) and not info.get("Error") and info.get("LocalNodeState") == "active"


def _read_swarm(engine: Engine) -> dict[str, Any]:
    """Return what an engine knows of its swarm. A manager that is losing its leader takes 20 s to answer."""
    with engine.api() as api:
        api.ping()
    with engine.api(patient=True) as api:
        swarm: dict[str, Any] = api.info().get("Swarm") or {}
    return swarm


def check_one_swarm(infos: Infos, members: Sequence[HostName], silent: Sequence[HostName] = ()) -> None:
    """Check that these members are in one swarm that has a leader.

    Args:
        infos: what `docker info` says of the swarm of each host.
        members: the hosts that are active members of a swarm.
        silent: hosts of the pool that do not answer.

    Raises:
        Refused: they are in two swarms, no manager is among them, or their managers have no leader.
    """
    managers = [name for name in members if infos[name].get("ControlAvailable")]
    manager_ids = {node for name in managers for node in list_managers(infos[name])}
    for name in members:
        if not managers and silent:
            message = f"host {name} is in a swarm whose managers do not answer, {_join_names(silent)} perhaps"
            raise Refused(message, RECOVER_HINT)
        if not managers:
            raise Refused(
                f"host {name} is in a swarm that no host of the pool manages",
                f"run `docker swarm leave` on {name}, then try again",
            )
        if not list_managers(infos[name]) & manager_ids or not _have_one_cluster(infos, managers):
            raise Refused(
                f"the hosts are in different swarms: {', '.join(members)}",
                "run `docker swarm leave --force` on those that should change, then try again",
            )
    if managers and not any(_has_leader(infos[name]) for name in managers):
        raise Refused(f"the Docker swarm of {_join_names(members)} has no leader", RECOVER_HINT)


def list_managers(info: Mapping[str, Any]) -> set[str]:
    """Return the ids of the managers that a member of a swarm knows."""
    return {manager["NodeID"] for manager in info.get("RemoteManagers") or []}


def _have_one_cluster(infos: Infos, managers: list[HostName]) -> bool:
    """Return True when all managers belong to one swarm.

    A manager that has just joined does not know the id of its swarm yet, but knows the manager that it joined.
    """
    clusters = {name: (infos[name].get("Cluster") or {}).get("ID") for name in managers}
    manager_ids = {node for name, cluster in clusters.items() if cluster for node in list_managers(infos[name])}
    new = [name for name, cluster in clusters.items() if not cluster] if manager_ids else []
    return len({*filter(None, clusters.values())}) <= 1 and all(
        list_managers(infos[name]) & manager_ids for name in new
    )


def _resolve_address(host: SwarmHost, info: Mapping[str, Any] | None = None) -> str:
    """Return a host's address as an IP address: a swarm accepts no names.

    Args:
        host: the host.
        info: what it says of its swarm, where it is a member; its address there needs none in pool.yml.

    Raises:
        UsageError: the host has no address, or it cannot be resolved.
    """
    if not host.address and info and info.get("NodeAddr"):
        return str(info["NodeAddr"])
    if not host.address:
        message = f"host {host.name} has no address that the others reach"
        raise UsageError(message, f"add `address:` to {host.name} in pool.yml")
    try:
        return socket.gethostbyname(host.address)
    except OSError as error:
        raise UsageError(
            f"the address {host.address} of host {host.name} cannot be resolved: {error.strerror or error}",
            "write the IP address in pool.yml",
        ) from error


def _join_names(names: Sequence[str]) -> str:
    return ", ".join(names)
