"""The hosts that experiments may use, with their connections: those of pool.yml, or this machine alone.

Every pass of the loop calls `refresh`. A change of pool.yml takes effect at once; a file with problems changes nothing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING

from riseml.base.consent import read_consent
from riseml.base.errors import RisemlError
from riseml.base.names import SLURM_CLUSTER, THIS_MACHINE, HostName, experiment_name
from riseml.base.records import dataclass
from riseml.base.settings import Settings
from riseml.base.states import PLACED, Network
from riseml.executors.base import Executor
from riseml.executors.docker import swarm
from riseml.executors.docker.executor import DockerExecutor
from riseml.executors.docker.helpers import HelperRegistry
from riseml.executors.docker.swarm import SwarmHost, SwarmManagement
from riseml.executors.pool import HostPool
from riseml.executors.swarm_changes import Departure, Membership, Recovery
from riseml.executors.transports.engine_client import Engine
from riseml.model import HostObservation, Mount, World
from riseml.planning.launch import LaunchTarget, StorageRoots
from riseml.server.hosts.choose_executor import (
    DOCKER,
    PROCESS,
    SLURM,
    check_cluster_choice,
    check_waiting,
    choose_executor,
    complete_pool,
    find_missing_engine,
    open_cluster,
    read_build_settings,
)
from riseml.server.hosts.mode import (
    HostMode,
    LocalMode,
    PoolMode,
    choose_network,
    encrypts_networks,
    find_clean_above,
    find_registry,
    record_executor,
    shares_output,
)
from riseml.server.hosts.pool_file import PoolFile
from riseml.server.hosts.storage_mounts import find_mounts, find_roots
from riseml.spec.pool.types import HostSpec, PoolSpec, SlurmSpec

if TYPE_CHECKING:
    from riseml.executors.slurm.executor import SlurmExecutor

_END_HELPERS = 5.0  # seconds in which a server that stops removes its helpers; the next one removes what is left
_FINISH_HELPERS = 60.0  # seconds that helpers get to finish on a host that has left the pool

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _HostsInForce:
    """The hosts at one moment; a reload replaces the whole record, so that a reader never sees half of a change."""

    mode: HostMode
    engines: Mapping[HostName, Engine] = field(default_factory=dict)  # empty for processes
    executors: Mapping[HostSpec, DockerExecutor] = field(default_factory=dict)  # by their entry in pool.yml
    cluster: SlurmExecutor | None = None  # of a pool.yml with `engine: slurm`

    def list_connections(self) -> list[Engine | SlurmExecutor]:
        """Return everything that holds a connection."""
        return [*self.engines.values(), *([] if self.cluster is None else [self.cluster])]


class HostSet:
    """The hosts of this server, and their last observations.

    Args:
        settings: the place of pool.yml, and the user's choice of an executor.
        server: id of this server; labels what it makes on the hosts.
        pool: observes the hosts; starts empty.
    """

    def __init__(self, settings: Settings, server: str, pool: HostPool) -> None:
        self.settings = settings
        self.pool = pool
        # the problem of a pool.yml that cannot be used; the previous version stays in force
        self.trouble: RisemlError | None = None
        self._server = server
        self._helpers = HelperRegistry()
        self._swarm_lock = threading.Lock()  # held while the swarm of the pool is changed
        self._file = PoolFile(settings.pool_file)
        self._is_applying = False  # the file has been read, and its hosts are not in force yet
        self._now = _HostsInForce(LocalMode(DOCKER))

    def open_hosts(self, world: World) -> None:
        """Use the hosts of pool.yml, or without one this machine.

        Raises:
            RisemlError: pool.yml has problems, or the settings name an executor that cannot run here, or that is not
                the one of open experiments.
        """
        check_waiting(self.settings, world)
        if self.settings.executor == PROCESS:
            self._file.mark_read()
            self._use_this_machine(world)
        else:
            self._apply(self._load_pool(world), world)

    def is_outdated(self) -> bool:
        """Return True until pool.yml as it is now, and the user's choice of processes, are in force or refused."""
        return self._is_applying or self._must_apply()

    def refresh(self, world: World) -> tuple[Executor, ...]:
        """Apply a change of pool.yml or the user's choice of processes, and return the hosts that are new."""
        if not self._must_apply():
            return ()
        if self.settings.executor == PROCESS:
            self._file.mark_read()
            return ()
        before = set(self.pool.executors.values())
        self._is_applying = True
        try:
            self._apply(self._load_pool(world), world)
            self.trouble = None
            log.info("the hosts are now %s", ", ".join(sorted(self.pool.executors)))
            self._warn_of_jobs(world, {executor.name for executor in before} - self.pool.executors.keys())
        except RisemlError as error:
            self.trouble = error
            log.warning("pool.yml cannot be used, the version before stays in force: %s", error.message)
        finally:
            self._is_applying = False
        return tuple(executor for executor in self.pool.executors.values() if executor not in before)

    def _must_apply(self) -> bool:
        return self._file.has_changed() or self._has_new_consent()

    def join_swarm(self) -> dict[HostName, Membership]:
        """Make one Docker Swarm of the pool's hosts that answer, and return what each host had to do for it.

        Raises:
            RisemlError: no host answers, one has no address or is in another swarm, or the swarm has no leader.
        """
        with self._changing_swarm():
            return swarm.join_swarm(self._list_swarm_hosts(), self._server)

    def arrange_swarm(self, patient: frozenset[HostName]) -> dict[HostName, Membership]:
        """Give the swarm of the pool the right managers, and return the hosts whose roles changed.

        Args:
            patient: hosts that do not answer and may come back soon.

        Raises:
            RisemlError: the swarm has no leader, or does not carry out a change.
        """
        with self._changing_swarm():
            hosts = self._list_swarm_hosts()
            names = frozenset(host.name for host in hosts)
            return SwarmManagement(hosts, self._server, names, patient).arrange()

    def leave_swarm(self, host: HostName) -> Departure:
        """Take a host out of the swarm of the pool, and return what happened.

        Raises:
            RisemlError: the swarm would lose the majority of its managers, or an engine refuses.
        """
        with self._changing_swarm():
            hosts = self._list_swarm_hosts()
            names = frozenset(member.name for member in hosts)
            management = SwarmManagement(hosts, self._server, names)
            return management.take_out(host)

    def plan_recovery(self, chosen: HostName | None) -> Recovery:
        """Return how the swarm of the pool gets a new majority.

        Raises:
            Refused: it has a leader, or no host that answers is in a swarm.
        """
        return swarm.plan_recovery(self._list_swarm_hosts(), chosen)

    def recover_swarm(self, recovery: Recovery) -> dict[HostName, Membership]:
        """Give the swarm of the pool a new majority.

        Raises:
            RisemlError: an engine refuses or does not answer.
        """
        with self._changing_swarm():
            return swarm.recover_swarm(self._list_swarm_hosts(), self._server, recovery)

    @contextmanager
    def _changing_swarm(self) -> Iterator[None]:
        """Let one change of the swarm follow the other, and read the facts of all hosts again afterwards."""
        with self._swarm_lock:
            try:
                yield
            finally:
                for executor in self._now.executors.values():
                    executor.forget_facts()

    def _list_swarm_hosts(self) -> list[SwarmHost]:
        return [SwarmHost(host.name, executor.engine, host.address) for host, executor in self._now.executors.items()]

    @contextmanager
    def try_host(self, host: HostSpec) -> Iterator[Executor]:
        """Give an executor for a host that is not in the pool, and close its connection afterwards."""
        executor = self._connect(host)
        try:
            yield executor
        finally:
            executor.engine.close()

    def join_with(self, host: HostSpec, executor: Executor) -> dict[HostName, Membership]:
        """Make one Docker Swarm of a new host and the hosts of the pool that answer.

        Raises:
            RisemlError: as `join_swarm`.
        """
        engines = [SwarmHost(host.name, executor.engine, host.address)] if isinstance(executor, DockerExecutor) else []
        with self._changing_swarm():
            return swarm.join_swarm([*self._list_swarm_hosts(), *engines], self._server)

    def reconnect(self, host: HostName) -> None:
        """Try a connection again at once instead of after its pause."""
        (self._now.cluster or self._now.engines[host]).reconnect()

    def close(self) -> None:
        """Remove the helpers on all hosts, and close the connections. Jobs and builds run on."""
        self._helpers.end(_END_HELPERS)
        for connection in self._now.list_connections():
            connection.close()

    @property
    def mode(self) -> HostMode:
        """Where experiments run now."""
        return self._now.mode

    @property
    def executor_name(self) -> str:
        """`docker`, `process` or `slurm`."""
        return self.mode.executor if isinstance(self.mode, LocalMode) else self.mode.spec.engine.value

    def find_missing_engine(self) -> str:
        """Return why no engine answers, while the user has not chosen processes; empty when no choice is needed."""
        undecided = isinstance(self.mode, LocalMode) and self.mode.undecided
        return find_missing_engine(self.settings) if undecided else ""

    def has_chosen_processes(self) -> bool:
        """Return True when this server or its user has chosen processes; an open experiment alone is no choice."""
        return self.settings.executor == PROCESS or read_consent(self.settings.home).processes

    @property
    def network(self) -> Network:
        """The network of gangs on several hosts."""
        return choose_network(self.mode)

    @property
    def encrypted(self) -> bool:
        """True when networks across hosts are encrypted."""
        return encrypts_networks(self.mode)

    @property
    def shared_output(self) -> bool:
        """True when every host sees the same output folders."""
        return shares_output(self.mode)

    @property
    def clean_above(self) -> int | None:
        """Per cent of a disk above which the server makes room; None: it never does."""
        return find_clean_above(self.mode, self.settings.clean_above)

    @property
    def registry(self) -> str | None:
        """The registry that moves environments between hosts."""
        return find_registry(self.mode)

    @property
    def roots(self) -> StorageRoots:
        """Where outputs and data are on every host."""
        return find_roots(self.mode, self.settings)

    def find_mounts(self) -> tuple[Mount, tuple[Mount, ...]]:
        """Return the output root as a mount, and the other mounts that jobs need."""
        return find_mounts(self.mode, self.settings)

    @property
    def notice(self) -> str:
        """A remark about the hosts for users who start an experiment; usually empty."""
        if self.trouble is not None:
            return f"{self.trouble.message.splitlines()[0]}, so that the hosts from before are used; see `riseml pool`"
        return self.mode.note if isinstance(self.mode, LocalMode) else ""

    @property
    def names(self) -> tuple[HostName, ...]:
        """The names of all hosts, sorted, whether they have ever answered or not."""
        return tuple(sorted(self.pool.executors))

    def last_seen(self) -> dict[HostName, HostObservation]:
        """Return every host that has ever answered, as the last pass saw it."""
        return self.pool.list_last_seen()

    def is_any_answering(self) -> bool:
        """Return True when at least one host answers, or is only slow."""
        return self.pool.has_usable_host()

    def find_troubles(self) -> dict[HostName, RisemlError]:
        """Return why each silent host does not answer."""
        return self.pool.list_problems()

    def find_url(self, host: HostName) -> str:
        """Return the address of a host's engine; empty for processes."""
        engine = self._now.engines.get(host)
        return "" if engine is None else engine.url

    def describe_executor(self, host: HostName) -> str:
        """Return what runs jobs on a host, for people: `Docker 20.10.24`."""
        return self.pool.executors[host].describe()

    def find_target(self, host: HostName | None) -> LaunchTarget:
        """Return how jobs on a host see the storage, also on one that has left the pool. None: the first host."""
        executors = self.pool.executors
        executor = next(iter(executors.values())) if host is None else executors.get(host)
        # a host that has left the pool was an engine, unless it is this machine or the Slurm cluster
        contained = host not in (THIS_MACHINE, SLURM_CLUSTER) if executor is None else executor.contained
        own = contained or (executor is not None and executor.name == SLURM_CLUSTER)
        roots = self.roots if own else find_roots(LocalMode(PROCESS), self.settings)
        return LaunchTarget(self._server, roots, contained)

    def is_this_machine(self, host: HostName) -> bool:
        """Return True when the server sees the files of a host."""
        engine = self._now.engines.get(host)
        return engine is None or engine.is_local

    def _warn_of_jobs(self, world: World, hosts: set[HostName]) -> None:
        """Log which jobs run on hosts that a user has just taken out of pool.yml."""
        for name in sorted(hosts):
            jobs = [
                f"{experiment_name(experiment.number, experiment.sub)}.{job.name}"
                for experiment in world.experiments
                for job in experiment.gang
                if job.host == name and job.state in PLACED
            ]
            if jobs:
                warning = (
                    "host %s is not in pool.yml any more, and these jobs run there: %s; they count as lost in %.0f s"
                )
                log.warning(warning, name, ", ".join(jobs), self.settings.lost_after)

    def _has_new_consent(self) -> bool:
        undecided = isinstance(self.mode, LocalMode) and self.mode.undecided
        return undecided and read_consent(self.settings.home).processes

    def _load_pool(self, world: World) -> PoolSpec | None:
        """Return the pool.yml, or the Slurm cluster of this machine when the user has chosen that; None: neither."""
        return complete_pool(self._file.load(), self.settings, world)

    def _apply(self, spec: PoolSpec | None, world: World) -> None:
        if spec is None:
            self._use_this_machine(world)
        elif spec.slurm is not None:
            check_cluster_choice(self.settings, world)
            self._use_cluster(spec, spec.slurm)
        else:
            self._use_pool(spec)

    def _use_pool(self, spec: PoolSpec) -> None:
        record_executor(self.settings.home, DOCKER)
        former = self._now
        executors = {host: former.executors.get(host) or self._connect(host) for host in spec.hosts}
        engines = {host.name: executor.engine for host, executor in executors.items()}
        self._now = _HostsInForce(PoolMode(spec), engines, executors)
        self.pool.replace_executors(tuple(executors.values()))
        self._close_former(former)

    def _use_cluster(self, spec: PoolSpec, settings: SlurmSpec) -> None:
        record_executor(self.settings.home, SLURM)
        former = self._now
        cluster = former.cluster
        if cluster is None or cluster.settings != settings:
            cluster = open_cluster(settings, self.settings, self._server)
        self._now = _HostsInForce(PoolMode(spec), cluster=cluster)
        self.pool.replace_executors((cluster,))
        self._close_former(former)

    def _use_this_machine(self, world: World) -> None:
        choice = choose_executor(self.settings, self._server, world, self._helpers)
        record_executor(self.settings.home, choice.name)
        executor = choice.executor
        former = self._now
        engines = {executor.name: executor.engine} if isinstance(executor, DockerExecutor) else {}
        self._now = _HostsInForce(LocalMode(choice.name, choice.note, choice.undecided), engines)
        self.pool.replace_executors((executor,))
        self._close_former(former)

    def _close_former(self, former: _HostsInForce) -> None:
        """Close the connections that are no longer in force; those of helpers when they have finished."""
        used = self._helpers.list_engines()
        connections = self._now.list_connections()
        for connection in former.list_connections():
            if any(connection is current for current in connections):
                continue
            if any(connection is engine for engine in used):
                threading.Thread(target=self._close_later, args=(connection,), name="close-host", daemon=True).start()
            else:
                connection.close()

    def _close_later(self, engine: Engine) -> None:
        """Close a connection when the helpers that use it have finished; end those that take too long."""
        if not self._helpers.wait_unused(engine, _FINISH_HELPERS):
            self._helpers.end_on(engine, _END_HELPERS)
        engine.close()

    def _connect(self, host: HostSpec) -> DockerExecutor:
        engine = Engine.of_host(host, self.settings.home)
        builds = read_build_settings(self.settings)
        return DockerExecutor(host, self._server, engine, builds, self.settings.log_limit, self._helpers)
