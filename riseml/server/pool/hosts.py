"""Which hosts experiments may use: those of pool.yml, else the local engine, else the processes of this machine.

The file is looked at in every pass; what changed in it takes effect at once, and a file with problems changes nothing.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path

from riseml import wire
from riseml.errors import RisemlError, UsageError
from riseml.executors.base import Executor
from riseml.executors.docker import swarm
from riseml.executors.docker.executor import DockerExecutor
from riseml.executors.docker.swarm import Membership
from riseml.executors.pool import HostPool
from riseml.executors.transports.engine_client import Engine
from riseml.executors.transports.hostkeys import HostKey, pin_keys, scan_keys
from riseml.executors.transports.ssh_command import Destination, find_destination
from riseml.model import Mount, World
from riseml.names import HostName
from riseml.planning.launch import DATA, OUTPUT, StorageRoots
from riseml.server.pool.choose_executor import DOCKER, PROCESS, Choice, choose_executor
from riseml.settings import Settings
from riseml.spec.pool.loader import load_pool
from riseml.spec.pool.types import HostSpec, PoolSpec, Volume
from riseml.states import Network

log = logging.getLogger(__name__)

Stamp = tuple[int, int, int] | None
"""What changes with a file: its inode, size and time of change (ns); None: there is no file."""


@dataclass(slots=True)
class Hosts:
    """The hosts of this server, and what they share.

    `trouble` says why the last pool.yml could not be used; the one before goes on.
    """

    settings: Settings
    server: str
    pool: HostPool
    name: str = DOCKER
    note: str = ""
    spec: PoolSpec | None = None
    trouble: RisemlError | None = None
    engines: dict[HostName, Engine] = field(default_factory=dict)
    _made: dict[HostSpec, DockerExecutor] = field(default_factory=dict)
    _stamp: Stamp = None

    def begin(self, world: World) -> None:
        """Use the hosts of pool.yml, or without one the host that this machine has.

        Raises:
            RisemlError: pool.yml has problems, or the settings name an executor that cannot run here.
        """
        self._stamp = _stamp(self.settings.pool_file)
        if self._stamp is None or self.settings.executor == PROCESS:
            self._use_this_machine(world)
        else:
            self._use(self._read())

    def is_outdated(self) -> bool:
        """Whether pool.yml has changed since it was read."""
        return _stamp(self.settings.pool_file) != self._stamp

    def refresh(self, world: World) -> tuple[Executor, ...]:
        """Follow pool.yml; the hosts that are new."""
        stamp = _stamp(self.settings.pool_file)
        if stamp == self._stamp or self.settings.executor == PROCESS:
            self._stamp = stamp
            return ()
        before = set(self.pool.executors.values())
        try:
            if stamp is None:
                self._use_this_machine(world)
            else:
                self._use(self._read())
            self.trouble = None
        except RisemlError as error:
            self.trouble = error
            log.warning("pool.yml cannot be used, the last one is still in force: %s", error.message)
        self._stamp = stamp
        return tuple(executor for executor in self.pool.executors.values() if executor not in before)

    def join(self) -> dict[HostName, Membership]:
        """Make one swarm of the pool's hosts; what each one had to do for it.

        Raises:
            RisemlError: a host does not answer, has no address, or is in another swarm.
        """
        made = self._made.items()
        found = swarm.join({host.name: one.engine for host, one in made}, {host.name: host.address for host, _ in made})
        for executor in self._made.values():
            executor.forget_facts()
        return found

    def show_host_keys(self, host: HostSpec) -> wire.HostKeys:
        """Return the keys that a host shows to ssh now.

        Raises:
            UsageError: the host is not reached over ssh, or only through another one.
            Unreachable: it shows no key.
        """
        destination = find_destination(host, self.settings.home)
        return _show_keys(destination, scan_keys(destination))

    def pin_host_keys(self, host: HostSpec, fingerprints: frozenset[str]) -> wire.HostKeys:
        """Pin those keys of a host that have these fingerprints, connect again at once, and return its keys.

        Raises:
            Conflict: the host shows no key with one of these fingerprints.
            UsageError, Unreachable: as `show_host_keys`.
        """
        destination = find_destination(host, self.settings.home)
        keys = pin_keys(destination, fingerprints)
        self.engines[host.name].reconnect()
        return _show_keys(destination, keys)

    def close(self) -> None:
        """Let go of the connections to all hosts."""
        for engine in self.engines.values():
            engine.close()

    @property
    def network(self) -> Network:
        """What gangs on several hosts use."""
        if self.spec is None or (len(self.spec.hosts) == 1 and self.spec.network is Network.OVERLAY):
            return Network.BRIDGE
        return self.spec.network

    @property
    def shared_output(self) -> bool:
        """Whether every host sees the same output."""
        return len(self.pool.executors) == 1 or (self.spec is not None and self.spec.output is not None)

    @property
    def notice(self) -> str:
        """What whoever starts something should know about the hosts; empty when there is nothing."""
        if self.trouble is None:
            return self.note
        return f"{self.trouble.message.splitlines()[0]}, so that the hosts from before are used; see `riseml pool`"

    @property
    def roots(self) -> StorageRoots:
        """Where outputs and data are on every host."""
        spec = self.spec
        output = spec.output if spec is not None and spec.output is not None else str(self.settings.output)
        data = spec.data if spec is not None and spec.data is not None else str(self.settings.data)
        return StorageRoots(output, data, str(Path.home()))

    def storage(self) -> tuple[Mount, tuple[Mount, ...]]:
        """The output root as a helper's mount, and what else has to be there. What pool.yml names is never made."""
        roots, spec = self.roots, self.spec
        output = _mount(roots.output, OUTPUT, makes=spec is None or spec.output is None)
        data = _mount(roots.data, DATA, makes=spec is None or spec.data is None)
        return output, (data,)

    def is_here(self, host: HostName) -> bool:
        """Whether the host is this machine, so that the server sees its files."""
        engine = self.engines.get(host)
        return engine is None or engine.is_local

    def _read(self) -> PoolSpec:
        path = self.settings.pool_file
        try:
            text = path.read_bytes()
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}", "make it readable, or remove it") from error
        return load_pool(text, path)

    def _use(self, spec: PoolSpec) -> None:
        made = {host: self._made.get(host) or self._make(host) for host in spec.hosts}
        left = [executor for host, executor in self._made.items() if host not in made]
        self._made, self.spec, self.name, self.note = made, spec, DOCKER, ""
        self.engines = {host.name: executor.engine for host, executor in made.items()}
        self.pool.replace(tuple(made.values()))
        for executor in left:
            executor.engine.close()

    def _make(self, host: HostSpec) -> DockerExecutor:
        return DockerExecutor(host, self.server, Engine.of_host(host, self.settings.home), self.settings.build_network)

    def _use_this_machine(self, world: World) -> None:
        choice: Choice = choose_executor(self.settings, self.server, world)
        executor, left = choice.executor, self._made
        self._made, self.spec, self.name, self.note = {}, None, choice.name, choice.note
        self.engines = {executor.name: executor.engine} if isinstance(executor, DockerExecutor) else {}
        self.pool.replace((executor,))
        for former in left.values():
            former.engine.close()


def _show_keys(destination: Destination, keys: tuple[HostKey, ...]) -> wire.HostKeys:
    shown: list[wire.HostKeyView] = [
        {"kind": key.title, "fingerprint": key.fingerprint, "pinned": key.pinned.value} for key in keys
    ]
    return {"host": destination.name, "known_hosts": str(destination.known_hosts), "keys": shown}


def _mount(root: str | Volume, target: str, *, makes: bool) -> Mount:
    if isinstance(root, Volume):
        return Mount(root.name, target, volume=root)
    return Mount(root, target, makes=makes)


def _stamp(path: Path) -> Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
