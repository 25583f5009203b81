"""The hosts that experiments may use, with their connections: those of pool.yml, or this machine alone.

Every pass of the loop calls `refresh`. A change of pool.yml takes effect at once; a file with problems changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from riseml.base.consent import read_consent
from riseml.base.errors import RisemlError
from riseml.base.names import HostName, experiment_name
from riseml.base.settings import DOCKER, PROCESS, Settings
from riseml.base.states import PLACED, Network
from riseml.executors.base import CheckStart, Executor, allow_start
from riseml.executors.kinds import HostOpener, PoolSwarm, uses_containers
from riseml.executors.pool import HostPool
from riseml.model import HostObservation, Mount, World
from riseml.planning.launch import LaunchTarget, StorageRoots
from riseml.server.hosts.choose_executor import (
    check_cluster_choice,
    check_waiting,
    choose_executor,
    complete_pool,
    find_missing_engine,
    refuse_cluster_for_team,
    refuse_own_machine,
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
from riseml.server.hosts.team_rules import TeamRules
from riseml.spec.pool.types import HostSpec, PoolSpec

log = logging.getLogger(__name__)


class HostSet:
    """The hosts of this server, and their last observations.

    Args:
        settings: the place of pool.yml, and the user's choice of an executor.
        server: id of this server; labels what it makes on the hosts.
        pool: observes the hosts; starts empty.
        check_start: see `executors.base.CheckStart`.
        rules: what the admin of a team's server allows; None: the server is for its own user.
    """

    def __init__(
        self,
        settings: Settings,
        server: str,
        pool: HostPool,
        check_start: CheckStart = allow_start,
        rules: TeamRules | None = None,
    ) -> None:
        self.settings = settings
        self.pool = pool
        self.rules = rules
        # the problem of a pool.yml that cannot be used; the previous version stays in force
        self.trouble: RisemlError | None = None
        self._mode: HostMode = LocalMode(DOCKER)
        self.swarm = PoolSwarm(server, lambda: pool.executors.values())
        self._server = server
        self._opener = HostOpener(settings, server, check_start)
        self._file = PoolFile(settings.pool_file)
        self._is_applying = False  # the file has been read, and its hosts are not in force yet

    def open_hosts(self, world: World) -> None:
        """Use the hosts of pool.yml, or without one this machine.

        Raises:
            RisemlError: pool.yml has problems, or the settings name an executor that cannot run here, or that is not
                the one of open experiments; or a team's server does not do what they say.
        """
        if self.rules is not None:
            refuse_cluster_for_team(None, self.settings)
            self.rules.check_settings(self.settings)
        check_waiting(self.settings, world)
        if self.settings.executor == PROCESS:
            refuse_own_machine(None, self.settings)
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

    @contextmanager
    def try_host(self, host: HostSpec) -> Iterator[Executor]:
        """Give an executor for a host that is not in the pool, and close its connection afterwards.

        Raises:
            Refused: a team's server connects to no such host.
        """
        if self.rules is not None:
            self.rules.check_host(host)
        executor = self._opener.open_engine(host)
        try:
            yield executor
        finally:
            executor.close()

    def reconnect(self, host: HostName) -> None:
        """Try a connection again at once instead of after its pause."""
        self.pool.executors[host].reconnect()

    def close(self) -> None:
        """Remove the helpers on all hosts, and close the connections. Jobs and builds run on."""
        self._opener.close()
        for executor in self.pool.executors.values():
            executor.close()

    @property
    def mode(self) -> HostMode:
        """Where experiments run now."""
        return self._mode

    @property
    def executor_name(self) -> str:
        """What runs jobs, as RISEML_EXECUTOR names it."""
        return self.mode.executor if isinstance(self.mode, LocalMode) else self.mode.spec.engine.value

    def find_missing_engine(self) -> str:
        """Return why no engine answers, while the user has not chosen processes; empty when no choice is needed."""
        undecided = isinstance(self.mode, LocalMode) and self.mode.undecided
        return find_missing_engine(self.settings) if undecided else ""

    def has_chosen_processes(self) -> bool:
        """Return True when this server or its user has chosen processes; an open experiment alone is not a choice."""
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
        executor = self.pool.executors.get(host)
        return "" if executor is None else executor.url

    def describe_executor(self, host: HostName) -> str:
        """Return what runs jobs on a host, for people: `Docker 20.10.24`."""
        return self.pool.executors[host].describe()

    def find_target(self, host: HostName | None) -> LaunchTarget:
        """Return how jobs on a host see the storage, also on one that has left the pool. None: the first host."""
        executors = self.pool.executors
        executor = next(iter(executors.values())) if host is None else executors.get(host)
        if executor is not None:
            return LaunchTarget(self._server, self.roots, executor.contained)
        contained = host is not None and uses_containers(host)
        roots = self.roots if contained else find_roots(LocalMode(PROCESS), self.settings)
        return LaunchTarget(self._server, roots, contained)

    def is_this_machine(self, host: HostName) -> bool:
        """Return True when the server sees the files of a host."""
        executor = self.pool.executors.get(host)
        return executor is None or executor.is_local

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
        """Return the pool.yml, or the cluster of this machine when the user has chosen that; None: neither."""
        return complete_pool(self._file.load(), self.settings, world)

    def _apply(self, spec: PoolSpec | None, world: World) -> None:
        refuse_own_machine(spec, self.settings)
        if spec is None:
            self._use_this_machine(world)
            return
        if self.rules is not None:
            refuse_cluster_for_team(spec, self.settings)
            self.rules.check_pool(spec)
        check_cluster_choice(spec, self.settings, world)
        record_executor(self.settings.home, spec.engine.value)
        self._use(PoolMode(spec), self._opener.open_pool(spec))

    def _use_this_machine(self, world: World) -> None:
        choice = choose_executor(self.settings, world, self._opener, self.rules)
        record_executor(self.settings.home, choice.name)
        self._use(LocalMode(choice.name, choice.note, choice.undecided), (choice.executor,))

    def _use(self, mode: HostMode, executors: tuple[Executor, ...]) -> None:
        """Put executors into force, and close the connections of those that are not any more."""
        former = tuple(self.pool.executors.values())
        self._mode = mode
        self.pool.replace_executors(executors)
        for executor in former:
            if executor not in executors:
                executor.close()
