"""Start a job's container where an earlier one has not let go of everything yet.

Facts of the engine (seen with Engine 20.10): it reports that a container has ended 50 to 300 ms before the address of
the container is free in its network, and refuses a container with this address meanwhile: `403 Address already in use`.
An inspection of the ended container waits until the address is free. Another attempt of a job has the address of the
last one, and starts as soon as that has ended. An engine that was killed while it started or removed a container may
never start it again: `500 task ...: already exists`, `409 ... is marked for removal`. A container in its place starts.
"""

from __future__ import annotations

import re
from typing import Any

import docker
from docker.errors import APIError, NotFound

from riseml.base.errors import EngineError
from riseml.executors.docker import labels
from riseml.executors.transports.engine_client import lacks_network
from riseml.model import JobKey, Launch

_TAKEN_ADDRESS = re.compile("address already in use", re.IGNORECASE)
_BROKEN = re.compile(
    "task .*already exists|failed to start shim: mkdir .*file exists|marked for removal|removal .*in progress",
    re.IGNORECASE,
)
_HALF_REMOVED = frozenset({"dead", "removing"})  # states of a container
_ENDED = frozenset({"exited", *_HALF_REMOVED})  # states of containers that may still have their addresses


def start_container(api: docker.APIClient, name: str, launch: Launch) -> None:
    """Start the container of a job.

    Raises:
        APIError: the engine refused.
        EngineError: another container has the address of the job, or the container was broken and is removed.
    """
    try:
        api.start(name)
    except APIError as error:
        if lacks_network(error):  # the container belongs to a removed network; it cannot join a new one
            api.remove_container(name, v=True)
        elif _BROKEN.search(str(error.explanation)):
            raise _remove_broken(api, name, str(error.explanation)) from error
        elif _TAKEN_ADDRESS.search(str(error.explanation)):
            _wait_for_ended(api, launch)
            _start_again(api, name, launch)
            return
        raise


def inspect_own(api: docker.APIClient, name: str, key: JobKey) -> dict[str, Any]:
    """Return the inspection of a job's container, which has the name that another one should get.

    Raises:
        EngineError: it belongs to another job, or not to riseml (permanent), or the engine makes or removes it at this
            moment, or has broken off to remove it.
    """
    try:
        container: dict[str, Any] = api.inspect_container(name)
    except NotFound:
        raise EngineError(f"the engine makes or removes the container {name} at this moment") from None
    if labels.parse_job_key(container["Config"]["Labels"] or {}) != key:
        raise EngineError(f"a container named {name} exists and does not belong to this job", permanent=True)
    if container["State"]["Status"] in _HALF_REMOVED:
        raise _remove_broken(api, name, "it was half removed")
    return container


def _remove_broken(api: docker.APIClient, name: str, why: str) -> EngineError:
    """Remove a container that never starts, and return the error that says so: the next try makes another one."""
    api.remove_container(name, v=True, force=True)
    return EngineError(f"the engine could not start the container {name}, which another one replaces: {why}")


def _wait_for_ended(api: docker.APIClient, launch: Launch) -> None:
    """Wait until the engine has taken the experiment's ended containers out of their network."""
    label_filters = [
        labels.label_filter(labels.SERVER, launch.server),
        labels.label_filter(labels.EXPERIMENT, str(launch.key.experiment)),
    ]
    for row in api.containers(all=True, filters={"label": label_filters}):
        if row["State"] in _ENDED:
            try:
                api.inspect_container(row["Id"])
            except NotFound:  # it was removed meanwhile, with its address
                continue


def _start_again(api: docker.APIClient, name: str, launch: Launch) -> None:
    try:
        api.start(name)
    except APIError as error:
        if not _TAKEN_ADDRESS.search(str(error.explanation)):
            raise
        (network,) = api.inspect_container(name)["NetworkSettings"]["Networks"]
        raise _explain_taken(network, launch.address or "", api.inspect_network(network)) from error


def _explain_taken(name: str, address: str, network: dict[str, Any]) -> EngineError:
    """Return the error that says which container has the address of a job, and what clears it."""
    containers = (network.get("Containers") or {}).values()
    holder = next(
        (str(container["Name"]) for container in containers if container["IPv4Address"].partition("/")[0] == address),
        None,
    )
    if holder is not None:
        return EngineError(
            f"the container {holder} has the address {address} of the job in the network {name}:"
            f" `docker network disconnect {name} {holder}` clears it"
        )
    return EngineError(
        f"the engine keeps the address {address} in the network {name} for a container that is gone: a restart of the"
        " engine clears it"
    )
