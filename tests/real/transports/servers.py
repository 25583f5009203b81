"""Real servers for the tests: an sshd, a Docker Engine with TLS, a relay that freezes, a network that drops packets."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import psutil

from riseml.base.errors import Unreachable
from riseml.executors.transports.engine_client import Engine
from tests.support.authority import Pair
from tests.support.dockerd import dockerd_command
from tests.support.ports import find_free_port
from tests.support.waiting import DEADLINE, wait_for

_SSHD = "/usr/sbin/sshd"
_RELAY = Path(__file__).with_name("relay.py")

Found = TypeVar("Found")


def wait(what: str, look: Callable[[], Found | None]) -> Found:
    """Call `look` until it returns something."""
    return wait_for(what, look, DEADLINE)


def listens(port: int, host: str = "127.0.0.1") -> bool:
    """Return whether a server accepts connections at a port."""
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex((host, port)) == 0


class Sshd:
    """An sshd on a loopback port with host and user keys of its own; it uses no ssh configuration of this machine.

    Args:
        folder: its files.
        settings: more lines of its configuration, by their first words.
    """

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self._settings = settings
        self.port = find_free_port()
        self.host_key = make_key(folder / "host_key")
        self.identity = make_key(folder / "user_key")
        (folder / "authorized_keys").write_text(public_key(self.identity))
        self.known_hosts = folder / "known_hosts"
        self.pin(self.host_key)
        self._process: subprocess.Popen[bytes] | None = None

    def pin(self, key: Path) -> None:
        """Write known_hosts with this key for the port of this sshd."""
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {public_key(key)}")

    @property
    def log(self) -> str:
        """The text of its log."""
        return (self.folder / "sshd.log").read_text()

    def start(self) -> None:
        """Start it and wait until it listens."""
        if os.geteuid() == 0:  # its privilege separation needs the folder
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        config = {
            "ListenAddress": f"127.0.0.1:{self.port}",
            "HostKey": self.host_key,
            "AuthorizedKeysFile": self.folder / "authorized_keys",
            "PidFile": "none",
            "UsePAM": "no",
            "StrictModes": "no",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
            "PermitRootLogin": "yes",
            **self._settings,
        }
        (self.folder / "sshd_config").write_text("".join(f"{key} {value}\n" for key, value in config.items()))
        command = [_SSHD, "-D", "-e", "-f", str(self.folder / "sshd_config")]
        with (self.folder / "sshd.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait("sshd listens", lambda: listens(self.port))

    def stop(self) -> None:
        """End it. Open connections have processes of their own, which live on."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(DEADLINE)
            self._process = None


def find_tunnels(pid: int | None = None) -> list[psutil.Process]:
    """Return the ssh processes of a process, by default of this one."""
    found: list[psutil.Process] = []
    for child in psutil.Process(pid).children():
        with suppress(psutil.NoSuchProcess):  # it has ended since the children were listed
            if child.name() == "ssh":
                found.append(child)
    return found


def is_gone(process: psutil.Process) -> bool:
    """Return whether a process has ended; it stays a zombie until its parent reads the exit code."""
    return not process.is_running()


def make_key(path: Path) -> Path:
    """Make a key pair without a passphrase; return the private key."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.name, "-f", str(path)], check=True)
    return path


def public_key(path: Path) -> str:
    """Return the public half of a key, as one line."""
    return path.with_suffix(".pub").read_text()


class Relay:
    """A relay that can stop answering. In a network namespace it listens there."""

    def __init__(self, listen: str, target: str, namespace: str | None = None) -> None:
        entered = [] if namespace is None else ["nsenter", f"--net=/run/netns/{namespace}"]
        command = [*entered, sys.executable, str(_RELAY), listen, target]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def __enter__(self) -> Relay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def freeze(self) -> None:
        """Accept connections, and copy nothing."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Copy again."""
        self._process.send_signal(signal.SIGCONT)


class Listener:
    """Reads a stream to its end in a thread. A cut stream may look like one that has ended."""

    def __init__(self) -> None:
        self.heard: list[object] = []
        self.ended = threading.Event()

    def listen(self, stream: Iterator[object]) -> None:
        """Start the thread."""
        threading.Thread(target=self._listen, args=(stream,), daemon=True).start()

    def _listen(self, stream: Iterator[object]) -> None:
        with suppress(Unreachable):
            self.heard.extend(stream)
        self.ended.set()


def listen_to_nothing(engine: Engine) -> Iterator[object]:
    """Yield events that no container causes."""
    with engine.stream() as api:
        yield from api.events(filters={"label": "io.riseml.test=none"})


class FarNetwork:
    """A network namespace at the end of a cable; it can drop every packet to this side."""

    def __init__(self) -> None:
        self.name = f"rt{os.getpid()}"
        third, fourth = divmod(os.getpid() % 2**13 * 4, 2**8)  # another one in every run
        net = f"198.18.{128 + third}"  # RFC 2544, apart from 198.19: the private engine's bridge and pools are there
        self.here, self.there = f"{net}.{fourth + 1}", f"{net}.{fourth + 2}"
        run("ip", "netns", "add", self.name)
        run("ip", "link", "add", self.name, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        run("ip", "addr", "add", f"{self.here}/30", "dev", self.name)
        run("ip", "link", "set", self.name, "up")
        run("ip", "-n", self.name, "addr", "add", f"{self.there}/30", "dev", "eth0")
        run("ip", "-n", self.name, "link", "set", "eth0", "up")

    def drop(self) -> None:
        """Drop every packet to this side from now on."""
        run("ip", "-n", self.name, "route", "add", "blackhole", f"{self.here}/32")

    def heal(self) -> None:
        """Let all packets through again."""
        run("ip", "-n", self.name, "route", "del", "blackhole", f"{self.here}/32")

    def close(self) -> None:
        """Remove the namespace."""
        run("ip", "link", "del", self.name)
        run("ip", "netns", "del", self.name)


class TlsEngine:
    """A private Docker Engine with TLS on a loopback port, one small image and no networks."""

    image = "riseml-test/shell:1"

    def __init__(self, ca: str, pair: Pair) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="riseml-tls-"))  # short: its sockets' paths have a limit
        self.port = find_free_port()
        self.url = f"unix://{self.folder}/docker.sock"
        root, namespace = self.folder, f"riseml-tls-{self.port}"
        command = [*dockerd_command(), f"--host={self.url}", f"--host=tcp://127.0.0.1:{self.port}"]
        command += ["--tlsverify", f"--tlscacert={ca}", f"--tlscert={pair.cert}", f"--tlskey={pair.key}"]
        command += [f"--data-root={root}/data", f"--exec-root={root}/exec", f"--pidfile={root}/pid"]
        command += [f"--containerd-namespace={namespace}", f"--containerd-plugins-namespace={namespace}-plugins"]
        command += [
            "--storage-driver=vfs",
            "--bridge=none",
            "--iptables=false",
            "--ip-forward=false",
            "--ip-masq=false",
        ]
        with (root / "log").open("wb") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def wait(self) -> None:
        """Wait until it answers."""

        def look() -> bool:
            assert self._process.poll() is None, (self.folder / "log").read_text()[-2000:]
            return listens(self.port)

        wait("dockerd listens", look)

    def stop(self) -> None:
        """End it and remove its files."""
        self._process.terminate()
        self._process.wait(DEADLINE)
        shutil.rmtree(self.folder)


def run(*command: str) -> None:
    """Run a command that must succeed."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
