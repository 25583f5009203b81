"""Speed of a transfer between two hosts over an overlay network, without and with encryption in turns.

The hosts are two engines in network namespaces of this machine, on the LAN that the tests of pools use. Without ESP in
the kernel no engine can encrypt: the report then says so, and nothing is measured.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping

from benchmarks.common import BenchContext, Measure, Report, interleave
from benchmarks.engine import BASE, BenchEngine
from riseml.base.names import HostName
from riseml.base.states import Network
from riseml.executors.base import HostSetup
from riseml.executors.docker.networks import ensure_network
from tests.real.pool.engines import EngineHost, engine_hosts
from tests.support.kernel import explain_missing_encryption

_SERVER = "bec4" * 8  # an ID that no server has
_PLAIN = "encrypted: false"
_ENCRYPTED = "encrypted: true"
_SPEED = "speed"
_TRANSFER = """
import socket, sys, time
size, piece = int(sys.argv[2]), b"x" * 2**20
if sys.argv[1] == "take":
    listener = socket.create_server(("", 2222))
    print("listens", flush=True)
    taken, peer = 0, listener.accept()[0]
    while taken < size * 2**20:
        taken += len(peer.recv(2**20))
    peer.sendall(b"!")
else:
    peer = socket.create_connection(("taker", 2222))
    begun = time.monotonic()
    for _ in range(size):
        peer.sendall(piece)
    peer.recv(1)
    print(size / (time.monotonic() - begun))
"""


def run(context: BenchContext) -> Report:
    report = Report()
    missing = _explain_missing()
    if missing is not None:
        report.notes.append(f"the speed of encrypted networks was not measured: {missing}")
        return report
    size = 16 if context.quick else 256  # MiB
    with engine_hosts(2) as hosts:
        for host in hosts:
            host.api.load_image(BenchEngine(context.engine).api.get_image(BASE))
        _join(hosts)
        contenders = {
            _PLAIN: lambda turn: _send(hosts, turn, size, encrypted=False),
            _ENCRYPTED: lambda turn: _send(hosts, turn, size, encrypted=True),
        }
        results = interleave(context.rounds(10), contenders, skip=1)
    speeds = [Measure(name, tuple(results[name][_SPEED]), unit="MiB/s") for name in contenders]
    report.add("a transfer from host to host", *speeds)
    return report


def _explain_missing() -> str | None:
    """Return why the bench cannot run here, or None."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return "the bench needs root and `ip`"
    missing = explain_missing_encryption()
    return None if missing is None else f"this kernel has no ESP ({missing})"


def _join(hosts: tuple[EngineHost, ...]) -> None:
    """Make one swarm of the hosts, managed by the first one."""
    first, *workers = hosts
    first.api.init_swarm(advertise_addr=first.address, listen_addr=f"{first.address}:2377")
    token = first.api.inspect_swarm()["JoinTokens"]["Worker"]
    for host in workers:
        host.api.join_swarm([f"{first.address}:2377"], token, f"{host.address}:2377", host.address)


def _send(hosts: tuple[EngineHost, ...], turn: int, size: int, *, encrypted: bool) -> Mapping[str, float]:
    """Send `size` MiB from the first host to the second one, and return the speed in MiB per second."""
    first, second = hosts
    number = 2 * (turn + 1) + encrypted  # of an experiment; it is part of the network's name
    share = HostSetup(number, f"10.99.{number}.0/28", Network.OVERLAY, encrypted=encrypted)
    ensure_network(first.api, _SERVER, HostName(first.name), share)
    network = f"riseml-{_SERVER[:8]}-{number}"
    taker = _start(second, network, "taker", "take", size)
    next(line for line in second.api.logs(taker, stream=True) if b"listens" in line)
    giver = _start(first, network, "giver", "give", size)
    try:
        first.api.wait(giver)
        return {_SPEED: float(first.api.logs(giver, stderr=False).decode())}
    finally:
        first.api.remove_container(giver, force=True)
        second.api.remove_container(taker, force=True)
        first.api.remove_network(network)


def _start(host: EngineHost, network: str, name: str, role: str, size: int) -> str:
    api = host.api
    request = {
        "Image": BASE,
        "Cmd": ["python3", "-c", _TRANSFER, role, str(size)],
        "HostConfig": {"NetworkMode": network},
        "NetworkingConfig": {"EndpointsConfig": {network: {"Aliases": [name]}}},
    }
    container = api.create_container_from_config(request)
    api.start(container["Id"])
    return str(container["Id"])
