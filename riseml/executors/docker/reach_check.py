"""Find out what containers of a host reach besides the network: services of the host, and the metadata of a cloud.

A container on the engine's own bridge tries to connect, as every program in a job can. A refused connection is an
answer, too: only a firewall gives none.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import docker
from docker.errors import APIError, DockerException, NotFound

from riseml.executors.capabilities import Finding, Outcome
from riseml.executors.docker import labels
from riseml.executors.docker.storage_helper import choose_names

METADATA = "169.254.169.254"
"""Where the machines of a cloud get their keys: a program that asks there acts as the machine."""

CLOSE_METADATA = f"iptables -I DOCKER-USER -d {METADATA} -j DROP"
"""Docker sends what containers send to other machines through this chain."""

_TOPIC = "reach"
_MOST_IMAGES = 4  # the most images on the host that are tried
_PATIENCE = 30  # seconds for the container
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


def check_reach(api: docker.APIClient, server: str, subnets: str) -> tuple[Finding, ...]:
    """Return a finding for each thing that jobs reach and should not; one without any when they reach none.

    Args:
        api: of the engine.
        server: id of this server.
        subnets: the range of the networks of experiments, for the rule that closes the host.
    """
    for image in choose_names(api.images())[:_MOST_IMAGES]:
        with suppress(APIError, DockerException, ValueError):  # an image without Python, or an engine without a bridge
            return tuple(describe_reach(_try_connections(api, server, image), subnets))
    message = "not known: the host has no image with Python, or its engine has no bridge"
    return (Finding(_TOPIC, Outcome.NOTE, f"what jobs reach is {message}"),)


def describe_reach(reached: dict[str, Any], subnets: str) -> list[Finding]:
    """Return the findings for the answer of the container."""
    found = []
    if reached["metadata"]:
        message = f"jobs reach {METADATA}, where a cloud gives keys of the machine; `{CLOSE_METADATA}` closes it"
        found.append(Finding(_TOPIC, Outcome.NOTE, message))
    if reached["host"]:
        rule = f"iptables -I INPUT -s {subnets} -m conntrack --ctstate NEW -j DROP"
        message = f"jobs reach services of this host, those on all of its addresses; `{rule}` closes them"
        found.append(Finding(_TOPIC, Outcome.NOTE, message))
    closed = Finding(_TOPIC, Outcome.OK, f"jobs reach neither services of this host nor {METADATA}")
    return found or [closed]


def _try_connections(api: docker.APIClient, server: str, image: str) -> dict[str, Any]:
    """Return what a container reaches; it has no mounts and no capabilities, and runs as `nobody`."""
    name = f"riseml-{server[:8]}-reach"
    _remove(api, name)  # a server that was killed may have left it
    request: dict[str, Any] = {
        "Image": image,
        "Entrypoint": ["python3", "-IS", "-c", _PROGRAM],
        "Cmd": [METADATA],
        "User": "65534:65534",
        "Labels": {labels.SERVER: server},
        "HostConfig": {
            "NetworkMode": "bridge",
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "ReadonlyRootfs": True,
            "PidsLimit": 64,
            "Memory": 256 * 2**20,
            "LogConfig": {"Type": "json-file", "Config": {"max-size": "1m", "max-file": "1"}},
        },
    }
    api.create_container_from_config(request, name)
    try:
        api.start(name)
        api.wait(name, timeout=_PATIENCE)
        found = json.loads(api.logs(name, stdout=True, stderr=False)[:1000])
    finally:
        _remove(api, name)
    if not isinstance(found, dict) or found.keys() != {"host", "metadata"}:
        raise ValueError("it is no answer of the program")
    return found


def _remove(api: docker.APIClient, name: str) -> None:
    with suppress(NotFound):
        api.remove_container(name, force=True, v=True)
