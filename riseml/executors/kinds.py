"""The kinds of executors: the one module beside their packages that names them all, and that makes each of them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from riseml.base.names import LOCAL_HOST, THIS_MACHINE, HostName
from riseml.base.settings import DOCKER, PROCESS, SLURM, ExecutorName, Settings
from riseml.executors.base import CheckStart, Executor, allow_start
from riseml.executors.build_limits import read_build_limits
from riseml.executors.capabilities import Finding
from riseml.executors.docker.environment_builds import BuildSettings
from riseml.executors.docker.executor import DockerExecutor
from riseml.executors.docker.helpers import HelperRegistry
from riseml.executors.docker.host_check import inspect_requirements
from riseml.executors.docker.pool_swarm import PoolSwarm as PoolSwarm
from riseml.executors.transports.engine_client import Engine
from riseml.spec.pool.types import SLURM_CLUSTER, HostSpec, PoolSpec, SlurmSpec, Tls

_KINDS: Mapping[HostName, ExecutorName] = {THIS_MACHINE: PROCESS, SLURM_CLUSTER: SLURM}
"""The kinds whose only host has a name of its own; all other hosts are engines."""


def find_kind(host: HostName) -> ExecutorName:
    """Return the kind of a host by its name, also of one that has left the pool."""
    return _KINDS.get(host, DOCKER)


def uses_containers(host: HostName) -> bool:
    """Return True when jobs on a host, which may have left the pool, see the folders of a container."""
    return find_kind(host) == DOCKER


class HostOpener:
    """Makes the executors of one server.

    Args:
        settings: of the server.
        server: id of the server.
        check_start: see `executors.base.CheckStart`.
    """

    def __init__(self, settings: Settings, server: str, check_start: CheckStart = allow_start) -> None:
        self._check_start = check_start
        self._settings = settings
        self._server = server
        self._helpers = HelperRegistry()
        self._opened: Mapping[HostSpec | SlurmSpec, Executor] = {}  # by entry of the pool.yml in force

    def open_pool(self, spec: PoolSpec) -> tuple[Executor, ...]:
        """Return the executors of a pool.yml. An entry that is as in the last call keeps its executor."""
        entries: tuple[HostSpec | SlurmSpec, ...] = spec.hosts if spec.slurm is None else (spec.slurm,)
        self._opened = {entry: self._opened.get(entry) or self._open_entry(entry) for entry in entries}
        return tuple(self._opened.values())

    def open_engine(self, host: HostSpec, engine: Engine | None = None) -> Executor:
        """Return the executor of a Docker Engine.

        Args:
            host: its entry in pool.yml.
            engine: the connection; None: as the entry says.
        """
        engine = engine or Engine.of_host(host, self._settings.home)
        builds = BuildSettings(self._settings.build_network, read_build_limits(self._settings))
        limit = self._settings.log_limit
        return DockerExecutor(host, self._server, engine, builds, limit, self._helpers, self._check_start)

    def open_local_engine(self) -> Executor:
        """Return the executor of the engine of DOCKER_HOST, in place of a pool."""
        self._opened = {}
        return self.open_engine(HostSpec(LOCAL_HOST, self._settings.engine), connect_local_engine(self._settings))

    def open_processes(self) -> Executor:
        """Return the executor of this machine without an engine, in place of a pool. This machine runs Linux."""
        from riseml.executors.process.executor import ProcessExecutor

        self._opened = {}
        limits = read_build_limits(self._settings)
        return ProcessExecutor(THIS_MACHINE, self._server, self._settings.home, limits, self._check_start)

    def close(self) -> None:
        """Remove the helpers on all hosts, and let nothing make another one."""
        self._helpers.end()

    def _open_entry(self, entry: HostSpec | SlurmSpec) -> Executor:
        return self.open_engine(entry) if isinstance(entry, HostSpec) else self._open_cluster(entry)

    def _open_cluster(self, spec: SlurmSpec) -> Executor:
        from riseml.executors.slurm.command_site import find_site
        from riseml.executors.slurm.executor import SlurmExecutor
        from riseml.executors.slurm.slurm_commands import SlurmCommands

        commands = SlurmCommands(find_site(spec, self._settings.home))
        return SlurmExecutor(SLURM_CLUSTER, self._server, spec, commands, read_build_limits(self._settings))


def connect_local_engine(settings: Settings) -> Engine:
    """Return the engine of DOCKER_HOST; over TCP with TLS as DOCKER_TLS_VERIFY and DOCKER_CERT_PATH say."""
    folder = settings.engine_certificates
    if folder is None or not settings.engine.startswith("tcp://"):
        return Engine(settings.engine)
    pair = [str(folder / name) for name in ("cert.pem", "key.pem")]
    if not any(Path(name).exists() for name in pair):
        pair = ["", ""]  # as Docker's command line does: the engine decides whether it requires a certificate
    tls = Tls(str(folder / "ca.pem"), *pair)
    return Engine.of_host(HostSpec(LOCAL_HOST, settings.engine, tls=tls), settings.home)


def check_local_engine(settings: Settings, *, has_gpus: bool) -> tuple[Finding, ...]:
    """Return what is right and wrong with the engine of DOCKER_HOST, for `riseml self check`.

    Args:
        settings: of the user.
        has_gpus: the driver of this machine shows GPUs.

    Raises:
        Unreachable: it does not answer.
    """
    with closing(connect_local_engine(settings)) as engine, engine.api() as api:
        return inspect_requirements(api, HostSpec(LOCAL_HOST, settings.engine), has_gpus=has_gpus)


def check_cluster() -> None:
    """Check that the scheduler of a cluster answers on this machine.

    Raises:
        Unreachable: it does not, or its commands are not installed.
    """
    from riseml.executors.slurm.slurm_commands import SlurmCommands

    SlurmCommands().list_nodes("")


def count_running_processes(home: Path) -> int:
    """Return how many jobs run as processes that write into a home, whether its server runs or not."""
    from riseml.executors.process.job_folders import list_running_jobs  # only Linux has what it imports

    return len(list_running_jobs(home / "processes"))
