"""Several real Docker Engines on one machine: a network namespace each, joined by a bridge, as ENGINES on a real LAN.

They are made and ended by the tests, never shared. What they hold on disk stays in the cache for the next run, except
for what a swarm and its networks left there.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import docker

from tests.support.dockerd import dockerd_cache, dockerd_command
from tests.support.waiting import DEADLINE, wait_for

CACHE = dockerd_cache()
BRIDGE = "riseml-lan"
NETWORK = "198.18.77"  # RFC 2544: reserved for tests
PORT = 2375
_LOCK = Path(tempfile.gettempdir()) / f"{BRIDGE}.lock"  # the names above are the machine's, whose cache it is or not

# The machine's own engine lets nothing of a bridge pass that is not its own. Nothing leaves the LAN: what a test needs
# there it brings itself, so that it needs no index of packages, no registry and no resolver of this machine.
_RULE = ("FORWARD", "-i", BRIDGE, "-o", BRIDGE, "-j", "ACCEPT")


@dataclass
class EngineHost:
    """One engine in a network namespace of its own."""

    name: str
    number: int
    folder: Path
    process: subprocess.Popen[bytes] | None = None
    arguments: tuple[str, ...] = ()
    clients: list[docker.APIClient] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"{NETWORK}.{10 + self.number}"

    @property
    def url(self) -> str:
        """Over the LAN, so that a cut link cuts it, too."""
        return f"tcp://{self.address}:{PORT}"

    @property
    def socket(self) -> str:
        """The way in that no cut link cuts."""
        return f"unix://{self.folder}/docker.sock"

    @property
    def namespace(self) -> str:
        return f"riseml-{self.name}"

    @property
    def api(self) -> docker.APIClient:
        """A client that reaches the engine even when its link is down."""
        if not self.clients:
            self.clients.append(docker.APIClient(base_url=self.socket, version="1.41", timeout=300))
        return self.clients[0]

    def start(self) -> None:
        """Start the engine and wait until it answers."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for pid_file in ("docker.pid", "exec/containerd/containerd.pid"):  # another process may have the number now
            (self.folder / pid_file).unlink(missing_ok=True)
        with (self.folder / "dockerd.log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *("nsenter", f"--net=/run/netns/{self.namespace}", *dockerd_command()),
                    *("--host", self.url, "--host", self.socket, "--tls=false"),
                    *("--data-root", str(self.folder / "data"), "--exec-root", str(self.folder / "exec")),
                    *("--pidfile", str(self.folder / "docker.pid")),
                    *(f"--containerd-namespace={self.namespace}", f"--containerd-plugins-namespace={self.namespace}-p"),
                    *self.arguments,
                ],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_for(f"engine {self.name} answers", self.answers, DEADLINE)

    def answers(self) -> bool:
        """Whether the engine answers on its socket."""
        with socket.socket(socket.AF_UNIX) as door:  # first, since the SDK leaks its socket when no engine listens
            if door.connect_ex(str(self.folder / "docker.sock")) != 0:
                return False
        with docker.APIClient(base_url=self.socket, version="1.41", timeout=DEADLINE) as api:
            return bool(api.ping())

    def kill(self) -> None:
        """`kill -9` of the engine, as when its machine dies. Its containers' shims are left to themselves."""
        assert self.process is not None, "the engine runs"
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def end(self) -> None:
        """Ask the engine to end, with everything in it."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()

    def stop(self) -> None:
        """End the engine with SIGTERM, and wait until it has ended."""
        self.end()
        if self.process is not None:
            self.process.wait(timeout=DEADLINE)
        for client in self.clients:
            client.close()

    def cut(self) -> None:
        """Pull the network cable."""
        _ip("-n", self.namespace, "link", "set", "eth0", "down")

    def mend(self) -> None:
        """Plug it in again."""
        _ip("-n", self.namespace, "link", "set", "eth0", "up")


@contextmanager
def engine_hosts(count: int) -> Iterator[tuple[EngineHost, ...]]:
    """`h1`, `h2`, ... on a LAN of their own; afterwards nothing of them runs. Two runs take their turns."""
    with _LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield from _engine_hosts(count)


def _engine_hosts(count: int) -> Iterator[tuple[EngineHost, ...]]:
    hosts = tuple(EngineHost(f"h{number}", number, CACHE / f"h{number}") for number in range(1, count + 1))
    _remove_lan(hosts)
    try:
        _make_lan(hosts)
        for host in hosts:
            _forget_networks(host)
            host.start()
        yield hosts
    finally:
        for host in hosts:
            host.end()
        for host in hosts:
            host.stop()
        _remove_lan(hosts)


def _make_lan(hosts: tuple[EngineHost, ...]) -> None:
    _ip("link", "add", BRIDGE, "type", "bridge")
    _ip("addr", "add", f"{NETWORK}.1/24", "dev", BRIDGE)
    _ip("link", "set", BRIDGE, "up")
    for host in hosts:
        _ip("netns", "add", host.namespace)
        _ip("link", "add", f"rl-{host.name}", "type", "veth", "peer", "name", "eth0", "netns", host.namespace)
        _ip("link", "set", f"rl-{host.name}", "master", BRIDGE, "up")
        _ip("-n", host.namespace, "link", "set", "lo", "up")
        _ip("-n", host.namespace, "addr", "add", f"{host.address}/24", "dev", "eth0")
        _ip("-n", host.namespace, "link", "set", "eth0", "up")
    subprocess.run(["iptables", "-I", *_RULE], check=True)


def _remove_lan(hosts: tuple[EngineHost, ...]) -> None:
    subprocess.run(["iptables", "-D", *_RULE], check=False, stderr=subprocess.DEVNULL)
    for host in hosts:
        _end_strays(host)
        _try_ip("netns", "delete", host.namespace)
        _try_ip("link", "delete", f"rl-{host.name}")  # a namespace dies late, with the last of its processes
    _try_ip("link", "delete", BRIDGE)


def _end_strays(host: EngineHost) -> None:
    """Kill the processes that a killed engine has left in its namespace, which no other program uses."""
    found = subprocess.run(["ip", "netns", "pids", host.namespace], check=False, capture_output=True, text=True)
    for pid in found.stdout.split():
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


def _forget_networks(host: EngineHost) -> None:
    for folder in ("swarm", "network", "containers"):
        shutil.rmtree(host.folder / "data" / folder, ignore_errors=True)


def _try_ip(*arguments: str) -> None:
    """The same for what may not be there."""
    subprocess.run(["ip", *arguments], check=False, stderr=subprocess.DEVNULL)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)
