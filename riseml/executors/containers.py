"""A launch as the engine wants it: a closed list of fields, nothing of a user's is passed through unseen."""

from __future__ import annotations

import math
from typing import Any

from riseml.executors import connection
from riseml.model import JobKey, Launch
from riseml.names import hostname

PIDS = 4096
_MIB = 2**20


def container_name(server: str, key: JobKey) -> str:
    """The same name for the same attempt of the same job, so that a replayed start meets its own container."""
    return f"riseml-{server[:8]}-{key.experiment}-{hostname(key.job)}-a{key.attempt}"


def network_name(server: str, experiment: int) -> str:
    """The name of an experiment's network."""
    return f"riseml-{server[:8]}-{experiment}"


def container_request(launch: Launch) -> dict[str, Any]:
    """The body of `POST /containers/create` (Docker Engine API 1.41)."""
    network = network_name(launch.server, launch.key.experiment)
    return {
        "Image": launch.image.reference,
        "Entrypoint": [],
        "Cmd": list(launch.command),
        "Env": [f"{name}={value}" for name, value in launch.environment],
        "WorkingDir": "/code",
        "Hostname": launch.hostname,
        "User": f"{launch.owner.uid}:{launch.owner.gid}",
        "Labels": {
            connection.SERVER: launch.server,
            connection.EXPERIMENT: str(launch.key.experiment),
            connection.JOB: launch.key.job,
            connection.ATTEMPT: str(launch.key.attempt),
            connection.TITLE: launch.title,
        },
        "HostConfig": _host_config(launch, network),
        "NetworkingConfig": {"EndpointsConfig": {network: _endpoint(launch)}},
    }


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
        "MemoryReservation": launch.resources.mem * _MIB,
        "RestartPolicy": {"Name": "no"},
        "AutoRemove": False,
        "LogConfig": {"Type": "json-file", "Config": {}},
        "NetworkMode": network,
        "ExtraHosts": [f"{name}:{address}" for name, address in launch.hosts],
        "Mounts": [
            {"Type": "bind", "Source": mount.source, "Target": mount.target, "ReadOnly": mount.read_only}
            for mount in launch.mounts
        ],
    }
    if launch.limits.cpus is not None:
        config["NanoCpus"] = int(launch.limits.cpus * 1e9)
    if launch.limits.mem is not None:
        config["Memory"] = config["MemorySwap"] = launch.limits.mem * _MIB
        config["MemoryReservation"] = min(launch.resources.mem, launch.limits.mem) * _MIB
    if launch.gpus:
        config["DeviceRequests"] = [{"DeviceIDs": list(launch.gpus), "Capabilities": [["gpu"]]}]
    return config
