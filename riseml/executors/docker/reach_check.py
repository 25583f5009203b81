"""Find out what containers of a host reach besides the network: services of the host, and the metadata of a cloud.

A container in a network as experiments have it tries to connect, as every program in a job can, and once more from the
bridge by which jobs of networks across hosts go out: a rule of a firewall names the networks that it closes. A refused
connection is an answer, too: only a firewall gives none.
"""

from __future__ import annotations

import ipaddress
import json
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import docker
from docker.errors import APIError, DockerException
from docker.types import IPAMConfig, IPAMPool
from requests.exceptions import RequestException

from riseml.base.records import dataclass
from riseml.executors.capabilities import Finding, Outcome
from riseml.executors.docker.helpers import Helpers
from riseml.executors.docker.storage_helper import choose_names
from riseml.executors.this_machine.machine import find_rival_interface

METADATA = "169.254.169.254"
"""Where the machines of a cloud get their keys: a program that asks there acts as the machine."""

CLOSE_METADATA = f"iptables -I DOCKER-USER -d {METADATA} -j DROP"
"""Docker sends what containers send to other machines through this chain."""

_TOPIC = "reach"
_MOST_SUBNETS = 8  # the most subnets that are tried for the container
_PREFIX = 26  # length of its subnet's prefix, as of most experiments
_GATEWAY_BRIDGE = "docker_gwbridge"  # Docker's name; it is there once a host is in a swarm
_PATIENCE = 30  # seconds for the container, and for the search for an image in which it runs
_PROGRAM = """
import errno, json, socket, struct, sys
def is_reached(host, port):
    try:
        socket.create_connection((host, port), 2).close()
    except OSError as error:
        return error.errno == errno.ECONNREFUSED
    return True
def find_gateway():
    with open("/proc/net/route") as rows:
        for row in rows:
            fields = row.split()
            if fields[1] == "00000000":
                return socket.inet_ntoa(struct.pack("=I", int(fields[2], 16)))
gateway = find_gateway()
print(json.dumps({"host": bool(gateway) and is_reached(gateway, 22), "metadata": is_reached(sys.argv[1], 80)}))
"""


@dataclass(frozen=True, slots=True)
class Reach:
    """What containers reach."""

    metadata: bool
    host_from: tuple[str, ...]  # the networks (CIDR) from which they reach services of the host


def check_reach(api: docker.APIClient, helpers: Helpers, subnets: str) -> tuple[Finding, ...]:
    """Return a finding for each thing that jobs may reach and should not; one for both when they reach neither.

    Args:
        api: a client of the engine.
        helpers: the helpers of the engine.
        subnets: the range of the networks of experiments.
    """
    images = choose_names(api.images())
    reach = _try_images(api, helpers, images, subnets) if images else None
    if reach is not None:
        return tuple(describe_reach(reach))
    message = "not known: the host has no image with Python, or its engine can make no network"
    return (Finding(_TOPIC, Outcome.NOTE, f"what jobs reach is {message}"),)


def describe_reach(reach: Reach) -> list[Finding]:
    """Return the findings for what the containers have reached."""
    if not reach.metadata and not reach.host_from:
        return [Finding(_TOPIC, Outcome.OK, f"jobs reach neither services of this host nor {METADATA}")]
    metadata = Finding(_TOPIC, Outcome.OK, f"jobs do not reach {METADATA}, where a cloud gives keys of the machine")
    if reach.metadata:
        message = f"jobs reach {METADATA}, where a cloud gives keys of the machine; `{CLOSE_METADATA}` closes it"
        metadata = Finding(_TOPIC, Outcome.NOTE, message)
    host = Finding(_TOPIC, Outcome.OK, "jobs do not reach services of this host")
    if reach.host_from:
        rules = [f"`{close_host(network)}`" for network in reach.host_from]
        remedy = f"{' and '.join(rules)} {'closes' if len(rules) == 1 else 'close'} them"
        message = f"jobs reach services of this host, those on all of its addresses; {remedy}"
        host = Finding(_TOPIC, Outcome.NOTE, message)
    return [metadata, host]


def close_host(network: str) -> str:
    """Return the rule of the firewall that closes the services of a host to the containers of a network (CIDR)."""
    return f"iptables -I INPUT -s {network} -m conntrack --ctstate NEW -j DROP"


def _try_images(api: docker.APIClient, helpers: Helpers, images: Sequence[str], subnets: str) -> Reach | None:
    """Return what containers reach, by the first image in which they run; None: there is no such image or network."""
    deadline = time.monotonic() + _PATIENCE
    reach: Reach | None = None
    # no subnet is free, or the engine is busy, also at the end: what was found out counts
    with suppress(DockerException, RequestException, ValueError), _lend_network(api, helpers, subnets) as network:
        for image in images:
            if time.monotonic() > deadline:
                break
            # an image without Python, one that was just removed, or the engine is busy
            with suppress(DockerException, RequestException, ValueError):
                reach = _try_networks(api, helpers, image, subnets, network)
                break
    return reach


def _try_networks(api: docker.APIClient, helpers: Helpers, image: str, subnets: str, network: str) -> Reach:
    """Return what containers reach from `network`, which has a subnet of `subnets`, and from each other network by
    which jobs go out.
    """
    answers = {subnets: _try_connections(api, helpers, image, network)}
    for row in api.networks(names=[f"^{_GATEWAY_BRIDGE}$"]):
        for pool in row["IPAM"].get("Config") or ():
            if ":" not in pool["Subnet"]:
                answers[str(pool["Subnet"])] = _try_connections(api, helpers, image, _GATEWAY_BRIDGE)
    return Reach(
        metadata=any(answer["metadata"] for answer in answers.values()),
        host_from=tuple(network for network, answer in answers.items() if answer["host"]),
    )


@contextmanager
def _lend_network(api: docker.APIClient, helpers: Helpers, subnets: str) -> Iterator[str]:
    """Give the name of a network with a subnet from the range of those of experiments; it is removed afterwards.

    Raises:
        ValueError: no subnet is free.
    """
    with helpers.claim_name("reach") as name:
        identity = _make_network(api, name, helpers.make_marks("reach"), _choose_subnets(subnets))
        try:
            yield name
        finally:
            api.remove_network(identity)


def _choose_subnets(subnets: str) -> list[str]:
    """Return some subnets of the range, by chance: checks of other engines on this machine choose theirs meanwhile."""
    whole = ipaddress.ip_network(subnets)
    count = 1 << max(0, _PREFIX - whole.prefixlen)
    places = random.sample(range(count), min(count, _MOST_SUBNETS))
    size = 1 << (32 - _PREFIX)
    return [f"{whole.network_address + place * size}/{max(_PREFIX, whole.prefixlen)}" for place in places]


def _make_network(api: docker.APIClient, name: str, marks: dict[str, str], choices: Sequence[str]) -> str:
    for subnet in choices:
        ipam = IPAMConfig(pool_configs=[IPAMPool(subnet=subnet)])
        try:
            network = api.create_network(name, driver="bridge", ipam=ipam, labels=marks)
        except APIError as error:
            if "overlap" not in str(error.explanation).lower():
                raise
            continue
        if find_rival_interface(subnet, f"br-{network['Id'][:12]}") is None:
            return str(network["Id"])
        api.remove_network(network["Id"])
    raise ValueError("no subnet is free")


def _try_connections(api: docker.APIClient, helpers: Helpers, image: str, network: str) -> dict[str, Any]:
    """Return what a container reaches; it has no mounts and no capabilities, and runs as `nobody`."""
    request: dict[str, Any] = {
        "Image": image,
        "Entrypoint": ["python3", "-IS", "-c", _PROGRAM],
        "Cmd": [METADATA],
        "User": "65534:65534",
        "HostConfig": {
            "NetworkMode": network,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "ReadonlyRootfs": True,
            "PidsLimit": 64,
            "Memory": 256 * 2**20,
            "LogConfig": {"Type": "json-file", "Config": {"max-size": "1m", "max-file": "1"}},
        },
    }
    with helpers.lend(api, "reach", request) as name:
        api.start(name)
        api.wait(name, timeout=_PATIENCE)
        answer = json.loads(api.logs(name, stdout=True, stderr=False)[:1000])
    if not isinstance(answer, dict) or answer.keys() != {"host", "metadata"}:
        raise ValueError("it is not an answer of the program")
    return answer
