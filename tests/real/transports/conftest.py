"""Engines behind a tunnel, behind TLS and behind a relay."""

from __future__ import annotations

import getpass
import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import docker
import pytest

from riseml.base.errors import Unreachable
from riseml.base.names import HostName, JobName
from riseml.executors.docker.containers import container_name
from riseml.executors.docker.executor import DockerExecutor
from riseml.executors.transports.engine_client import Engine
from riseml.executors.transports.routes import Keepalive, Timeouts
from riseml.executors.transports.tunnel_phases import TunnelTiming
from riseml.model import JobKey
from riseml.spec.pool.types import HostSpec, Tls
from tests.real.transports.servers import FarNetwork, Sshd, TlsEngine
from tests.real.transports.shell import pack_shell
from tests.support.authority import Authority
from tests.support.root import need_root

BASE = "riseml-test/base:py311"
CALM = Timeouts(quick=30.0, slow=60.0, ssh=TunnelTiming(connect=30, login=30, first_delay=0.05, longest_delay=0.2))
"""Long timeouts, for a busy machine, and reconnects without a long delay."""
HASTE = replace(
    CALM,
    tcp=Keepalive(idle=1, interval=1, count=2, unconfirmed=3),
    ssh=replace(CALM.ssh, alive_interval=1, alive_count=3),
)
"""For tests that wait until connections count as dead."""

Connect = Callable[..., Engine]


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a short path: a path too long for a tunnel's socket makes riseml choose another folder."""
    return tmp_path_factory.mktemp("t")


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Connect]:
    """Give a function that makes engines of pool hosts; close them afterwards."""
    made: list[Engine] = []

    def make(url: str, patience: Timeouts = CALM, **fields: object) -> Engine:
        spec = HostSpec(HostName("far"), url, **fields)  # type: ignore[arg-type]  # the fields, by name
        made.append(Engine.of_host(spec, tmp_path / "home", patience))
        return made[-1]

    yield make
    for engine in made:
        engine.close()


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    """Run an sshd in front of this machine's engine."""
    folder = tmp_path / "sshd"
    folder.mkdir()
    server = Sshd(folder)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def far(sshd: Sshd, engine_url: str, connect: Connect) -> Engine:
    """Return the engine of this machine, reached over ssh."""
    return connect(ssh_url(sshd, engine_url), identity=str(sshd.identity), known_hosts=str(sshd.known_hosts))


def ssh_url(sshd: Sshd, engine_url: str, port: int | None = None) -> str:
    """Return the url of the engine behind an sshd, or behind a relay in front of the sshd."""
    return f"ssh://{getpass.getuser()}@127.0.0.1:{port or sshd.port}{engine_url.removeprefix('unix://')}"


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Return the authority that signs the engine's certificate and riseml's."""
    return Authority(tmp_path_factory.mktemp("authority"), "authority")


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Return another authority, which neither side trusts."""
    return Authority(tmp_path_factory.mktemp("stranger"), "stranger")


@pytest.fixture(scope="session")
def tls(authority: Authority) -> Tls:
    """Return riseml's certificate, its key and the authority."""
    pair = authority.sign("client")
    return Tls(authority.ca, pair.cert, pair.key)


@pytest.fixture(scope="session")
def tls_engine(authority: Authority) -> Iterator[TlsEngine]:
    """Run a Docker Engine with --tlsverify, whose certificate is for 127.0.0.1 only."""
    need_root("a private Docker Engine needs root")
    engine = TlsEngine(authority.ca, authority.sign("engine", ("127.0.0.1",)))
    try:
        engine.wait()
        with docker.APIClient(base_url=engine.url, version="auto") as api:
            api.import_image_from_data(pack_shell(), *TlsEngine.image.split(":"))
        yield engine
    finally:
        engine.stop()


@pytest.fixture
def far_network() -> Iterator[FarNetwork]:
    """Give a network that can drop all packets."""
    need_root("a private network needs root")
    network = FarNetwork()
    yield network
    network.close()


class Talker:
    """A container that is a job of a host; the test makes it without the transport under test."""

    def __init__(self, api: docker.APIClient, image: str, script: str) -> None:
        self.key = JobKey(1, JobName("train"), 1)
        self._server = secrets.token_hex(8)
        self._api = api
        self._name = container_name(self._server, self.key)
        config = api.create_host_config(network_mode="none")
        api.create_container(image, ["/bin/sh", "-c", script], name=self._name, host_config=config)
        api.start(self._name)

    def executor(self, engine: Engine) -> DockerExecutor:
        """Return the host of the job, reached through an engine."""
        return DockerExecutor(HostSpec(HostName("far"), engine.url), self._server, engine)

    def remove(self) -> None:
        """Remove the container."""
        self._api.remove_container(self._name, force=True)


@pytest.fixture
def talk() -> Iterator[Callable[[str, str, str], Talker]]:
    """Give a function that runs a line of shell in a container of an engine; remove the containers afterwards."""
    made: list[tuple[docker.APIClient, Talker]] = []

    def make(url: str, image: str, script: str) -> Talker:
        api = docker.APIClient(base_url=url, version="auto")
        made.append((api, Talker(api, image, script)))
        return made[-1][1]

    yield make
    for api, talker in made:
        talker.remove()
        api.close()


def refusal(engine: Engine) -> Unreachable:
    """Return why an engine cannot be reached."""
    with pytest.raises(Unreachable) as raised:
        engine.version()
    return raised.value
