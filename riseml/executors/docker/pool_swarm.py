"""The Docker Swarm of a server's pool: one change of it follows the other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from riseml.base.names import HostName
from riseml.executors.base import Executor
from riseml.executors.docker import swarm
from riseml.executors.docker.executor import DockerExecutor
from riseml.executors.docker.swarm import SwarmHost, SwarmManagement
from riseml.executors.swarm_changes import Departure, Membership, Recovery


class PoolSwarm:
    """Changes the swarm of a pool. Each method asks all hosts that are Docker Engines.

    Args:
        server: id of the server.
        list_executors: returns the executors of the pool.
    """

    def __init__(self, server: str, list_executors: Callable[[], Iterable[Executor]]) -> None:
        self._server = server
        self._list_executors = list_executors
        self._lock = threading.Lock()  # held while the swarm is changed

    def join(self, candidate: Executor | None = None) -> dict[HostName, Membership]:
        """Make one swarm of the hosts that answer, and return what each host had to do for it.

        Args:
            candidate: a host that is not in the pool yet; None: only those of the pool.

        Raises:
            RisemlError: no host answers, one has no address or is in another swarm, or the swarm has no leader.
        """
        with self._changing():
            return swarm.join_swarm(self._list_hosts(candidate), self._server)

    def arrange(self, patient: frozenset[HostName]) -> dict[HostName, Membership]:
        """Give the swarm the right managers, and return the hosts whose roles changed.

        Args:
            patient: hosts that do not answer and may come back soon.

        Raises:
            RisemlError: the swarm has no leader, or does not carry out a change.
        """
        with self._changing():
            hosts = self._list_hosts()
            names = frozenset(host.name for host in hosts)
            return SwarmManagement(hosts, self._server, names, patient).arrange()

    def leave(self, host: HostName) -> Departure:
        """Take a host out of the swarm, and return what happened.

        Raises:
            RisemlError: the swarm would lose the majority of its managers, or an engine refuses.
        """
        with self._changing():
            hosts = self._list_hosts()
            names = frozenset(member.name for member in hosts)
            return SwarmManagement(hosts, self._server, names).take_out(host)

    def plan_recovery(self, chosen: HostName | None) -> Recovery:
        """Return how the swarm gets a new majority.

        Raises:
            Refused: it has a leader, or no host that answers is in a swarm.
        """
        return swarm.plan_recovery(self._list_hosts(), chosen)

    def recover(self, recovery: Recovery) -> dict[HostName, Membership]:
        """Give the swarm a new majority.

        Raises:
            RisemlError: an engine refuses or does not answer.
        """
        with self._changing():
            return swarm.recover_swarm(self._list_hosts(), self._server, recovery)

    def _list_engines(self, candidate: Executor | None = None) -> list[DockerExecutor]:
        executors = (*self._list_executors(), candidate)
        return [executor for executor in executors if isinstance(executor, DockerExecutor)]

    def _list_hosts(self, candidate: Executor | None = None) -> list[SwarmHost]:
        return [executor.as_member() for executor in self._list_engines(candidate)]

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Let one change of the swarm follow the other, and read the facts of all hosts again afterwards."""
        with self._lock:
            try:
                yield
            finally:
                for executor in self._list_engines():
                    executor.forget_facts()
