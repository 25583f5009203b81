"""Turn a launch into the request that creates its container: a closed list of fields, so that riseml.yml can set no
other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import docker
from docker.errors import ImageNotFound

from riseml.base.names import hostname
from riseml.base.settings import DEFAULT_LOG_LIMIT
from riseml.base.states import Network
from riseml.executors.docker import image_names, labels
from riseml.model import JobKey, Launch, Mount

PIDS = 4096  # processes and threads of one job at most
_HOST = "host"  # the engine's name for the network of its machine
_OOM_SCORE = 500  # when a host has no memory left, its kernel kills jobs first, before the engine and the server

# The engine writes a job's output into a file, and into a second one when the first is full: a reader that is behind at
# that moment loses lines. In the file, a byte takes six at most, and a line 74 more. The server keeps
# RISEML_LOG_LIMIT, in which a line takes its text and about 45 bytes: it is full long before the file is.
_LOG_FACTOR = 8
_LEAST_LOG = 64 * 2**20  # bytes of one file
_MOST_LOG = 4 * 2**30  # bytes of one file
_MIB = 2**20


def container_name(server: str, key: JobKey) -> str:
    """Return the name of a job's container. A repeated start of the same attempt finds its container by this name."""
    return f"riseml-{server[:8]}-{key.experiment}-{hostname(key.job)}-a{key.attempt}"


def network_name(server: str, experiment: int, across: str | None = None) -> str:
    """Return the name of an experiment's network.

    Args:
        server: id of the server.
        experiment: id of the record.
        across: the subnet (CIDR) of a network across hosts, whose name contains the address: hosts that did not create
            the network identify it only by name. When an engine cannot release a network, the next one has another
            subnet, and so another name.
    """
    name = f"riseml-{server[:8]}-{experiment}"
    return name if across is None else f"{name}-{across.partition('/')[0].replace('.', '-')}"  # Swarm takes no dots


def create_container(api: docker.APIClient, request: dict[str, Any], name: str, layer: str | None) -> bool:
    """Create a container, from the layer if it still exists. Return True when the container has the code.

    An image that was copied from another engine has a different name on this one.
    """
    if layer is not None:
        with suppress(ImageNotFound):
            api.create_container_from_config({**request, "Image": layer}, name)
            return True
    try:
        api.create_container_from_config(request, name)
    except ImageNotFound:
        image = image_names.find_local_name(api, request["Image"])
        if image is None:
            raise
        api.create_container_from_config({**request, "Image": image}, name)
    return False


def container_request(
    launch: Launch, most_mem: int, network_id: str | None = None, log_limit: int = DEFAULT_LOG_LIMIT
) -> dict[str, Any]:
    """Return the body of `POST /containers/create` (Docker Engine API 1.41).

    Args:
        launch: the job.
        most_mem: MiB that a job without its own limit may use, so that it ends before its host has no memory, and
            before it takes what other jobs were promised. A job may always use the memory of its `resources`.
        network_id: the id of the experiment's network; None: the network that has the experiment's name.
        log_limit: bytes that the server keeps of the job's output.
    """
    across = launch.subnet if launch.network is Network.OVERLAY else None
    own = network_id or network_name(launch.server, launch.key.experiment, across)
    network = _HOST if launch.network is Network.HOST else own
    return {
        "Image": launch.image.reference,
        "Entrypoint": [],
        "Cmd": list(launch.command),
        "Env": [f"{name}={value}" for name, value in launch.environment],
        "WorkingDir": "/code",
        "Hostname": launch.hostname,
        "User": f"{launch.owner.uid}:{launch.owner.gid}",
        "Labels": {
            **labels.job_labels(launch.key, launch.server, launch.title),
            labels.MEM: str(launch.resources.mem),
        },
        "HostConfig": {
            **_host_config(launch, network),
            **_memory_config(launch, most_mem),
            "LogConfig": {"Type": "json-file", "Config": {"max-size": str(find_log_size(log_limit)), "max-file": "2"}},
        },
        "NetworkingConfig": {"EndpointsConfig": {} if network == _HOST else {network: _endpoint(launch)}},
    }


def find_log_size(log_limit: int) -> int:
    """Return the bytes of one of the two files in which the engine keeps a job's output."""
    return min(max(_LOG_FACTOR * log_limit, _LEAST_LOG), _MOST_LOG)


def describe_mounts(mounts: Iterable[Mount]) -> list[dict[str, Any]]:
    """Return mounts in the engine's form, except those of `describe_binds`."""
    return [_volume_mount(mount) if mount.volume else _folder_mount(mount) for mount in mounts if not mount.makes]


def describe_binds(mounts: Iterable[Mount]) -> list[str]:
    """Return the mounts whose missing folder the engine creates; only this older form of mounts does that."""
    return [f"{mount.source}:{mount.target}:{'ro' if mount.read_only else 'rw'}" for mount in mounts if mount.makes]


def _folder_mount(mount: Mount) -> dict[str, Any]:
    return {"Type": "bind", "Source": mount.source, "Target": mount.target, "ReadOnly": mount.read_only}


def _volume_mount(mount: Mount) -> dict[str, Any]:
    description: dict[str, Any] = {"Type": "volume", "Source": mount.source, "Target": mount.target}
    options: dict[str, Any] = {"NoCopy": True}
    if mount.volume is not None:
        options["DriverConfig"] = {"Name": mount.volume.driver, "Options": dict(mount.volume.options)}
    return {**description, "ReadOnly": mount.read_only, "VolumeOptions": options}


def _endpoint(launch: Launch) -> dict[str, Any]:
    endpoint: dict[str, Any] = {"Aliases": [launch.hostname]}
    if launch.address:
        endpoint["IPAMConfig"] = {"IPv4Address": launch.address}
    return endpoint


def _host_config(launch: Launch, network: str) -> dict[str, Any]:
    config: dict[str, Any] = {
        "Init": True,
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges"],
        "Privileged": False,
        "PidsLimit": PIDS,
        "ShmSize": launch.shm_size * _MIB,
        "CpuShares": max(2, math.ceil(launch.resources.cpus * 1024)),
        "RestartPolicy": {"Name": "no"},
        "AutoRemove": False,
        "OomScoreAdj": _OOM_SCORE,
        "Ulimits": [{"Name": "core", "Soft": 0, "Hard": 0}],
        "NetworkMode": network,
        "ExtraHosts": [] if network == _HOST else [f"{name}:{address}" for name, address in launch.hosts],
        "Mounts": describe_mounts(launch.mounts),
    }
    if launch.limits.cpus is not None:
        config["NanoCpus"] = int(launch.limits.cpus * 1e9)
    if launch.gpus:
        config["DeviceRequests"] = [{"DeviceIDs": list(launch.gpus), "Capabilities": [["gpu"]]}]
    return config


def _memory_config(launch: Launch, most_mem: int) -> dict[str, int]:
    """Return the memory limits, without swap: a job that runs out of memory ends instead of slowing down its host."""
    limit = max(most_mem, launch.resources.mem) if launch.limits.mem is None else launch.limits.mem
    return {
        "Memory": limit * _MIB,
        "MemorySwap": limit * _MIB,
        "MemoryReservation": min(launch.resources.mem, limit) * _MIB,
    }
