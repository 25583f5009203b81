"""Launches of jobs that only sleep, for tests of what an executor does with them."""

from __future__ import annotations

from ipaddress import IPv4Network

from riseml.base.names import JobName
from riseml.base.states import Network
from riseml.model import Image, JobKey, Launch, Owner
from riseml.spec.config.types import Limits, Resources
from tests.support.rig import BASE


def make_sleeping_launch(
    server: str, attempt: int, subnet: str, address: int, network: Network = Network.BRIDGE
) -> Launch:
    """Return the worker of experiment 1 with an address of a subnet, counted from the subnet's first one."""
    return Launch(
        key=JobKey(1, JobName("worker.1"), attempt),
        server=server,
        title="paul.1.worker.1",
        hostname="worker-1",
        image=Image(BASE),
        command=("sleep", "600"),
        environment=(),
        resources=Resources(0.1, 32, 0),
        limits=Limits(),
        shm_size=64,
        owner=Owner("paul", 1000, 1000),
        snapshot="",
        network=network,
        subnet=subnet,
        address=str(IPv4Network(subnet)[address]),
    )
