"""The GPUs of a host, read through its engine: nvidia-smi in a container that gets all of them and nothing else.

The nvidia runtime, or CDI, puts nvidia-smi and its library into the container; the image must have the C library that
they need (glibc). So any image with glibc works: one that is on the host already, or `IMAGE`, which is pulled.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import docker
from docker.errors import APIError

from riseml.base.errors import EngineError
from riseml.executors.capabilities import GpuReading
from riseml.executors.docker.helpers import Helpers
from riseml.executors.docker.image_names import WITHOUT_PROGRAMS
from riseml.executors.gpus.nvidia_smi import LIST_COMMAND, UnknownField, add_slices, has_slices, make_query, parse_table

IMAGE = "debian:stable-slim"
_RUNTIME = "nvidia"
_CDI = "nvidia.com/gpu"
_MOST_IMAGES = 4  # the most images on the host that are tried
_PATIENCE = 30  # seconds that nvidia-smi may take; it loads the driver when no process uses it
_MOST_TEXT = 2**18  # bytes of its output


def offers_gpus(info: dict[str, Any]) -> bool:
    """Return True when the engine can pass on GPUs, by the answer of `GET /info`."""
    return _find_way(info) is not None


def probe_gpus(api: docker.APIClient, helpers: Helpers, info: dict[str, Any], *, pulls: bool) -> tuple[GpuReading, ...]:
    """Return the GPUs of the host; empty when its engine cannot pass on any. `pulls`: `IMAGE` may be pulled.

    Raises:
        EngineError: the driver fails, or the host has no image in which nvidia-smi runs.
    """
    way = _find_way(info)
    if way is None:
        return ()
    failure: Exception | None = None
    try:
        for image in _list_images(api, pulls=pulls):
            try:
                return _read_table(api, helpers, image, way)
            except (APIError, EngineError) as error:  # an image without glibc, for example
                failure = failure if isinstance(failure, EngineError) else error
    except APIError as error:  # it cannot be pulled
        failure = failure or error
    if isinstance(failure, EngineError):
        raise failure
    reason = getattr(failure, "explanation", None) or failure or "no image is there"
    hint = f"pull {IMAGE} there, or list the ids: `gpus: [0, 1]` in pool.yml"
    raise EngineError(f"nvidia-smi did not run on the host: {str(reason)[:300]}", hint)


def _find_way(info: dict[str, Any]) -> dict[str, Any] | None:
    """Return the part of a container's configuration that gives it all GPUs; None: the engine has no such way."""
    if _RUNTIME in (info.get("Runtimes") or {}):
        return {"Runtime": _RUNTIME}
    devices = [str(device.get("ID") or "") for device in info.get("DiscoveredDevices") or []]
    if any(device.startswith(_CDI) for device in devices):
        return {"DeviceRequests": [{"Driver": "cdi", "DeviceIDs": [f"{_CDI}=all"]}]}
    return None


def _list_images(api: docker.APIClient, *, pulls: bool) -> Iterator[str]:
    """Yield images to try: `IMAGE` if the host has it, the newest others with a name, and `IMAGE` after pulling it."""
    images = sorted(api.images(), key=lambda image: -int(image.get("Created") or 0))
    names = [tag for image in images for tag in (image.get("RepoTags") or [])[:1] if not tag.startswith("<none>")]
    names = [name for name in names if not name.startswith(WITHOUT_PROGRAMS)]
    if IMAGE in names:
        yield IMAGE
    yield from [name for name in names if name != IMAGE][:_MOST_IMAGES]
    if IMAGE not in names and pulls:
        api.pull(IMAGE)
        yield IMAGE


def _read_table(api: docker.APIClient, helpers: Helpers, image: str, way: dict[str, Any]) -> tuple[GpuReading, ...]:
    try:
        text = _run(api, helpers, image, make_query(), way)
        readings = parse_table(text)
    except UnknownField:
        text = _run(api, helpers, image, make_query(mig=False), way)
        readings = parse_table(text)
    return add_slices(readings, _run(api, helpers, image, LIST_COMMAND, way)) if has_slices(text) else readings


def _run(api: docker.APIClient, helpers: Helpers, image: str, command: tuple[str, ...], way: dict[str, Any]) -> str:
    """Return what a command prints in a container with the GPUs, without network, mounts and capabilities."""
    request: dict[str, Any] = {
        "Image": image,
        "Entrypoint": list(command[:1]),
        "Cmd": list(command[1:]),
        "User": "65534:65534",
        "Env": ["NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=utility", "LC_ALL=C"],
        "HostConfig": {
            **way,
            "NetworkMode": "none",
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "PidsLimit": 64,
            "Memory": 512 * 2**20,
            "LogConfig": {"Type": "json-file", "Config": {"max-size": "1m", "max-file": "1"}},
        },
    }
    with helpers.lend(api, "gpus", request) as name:
        api.start(name)
        api.wait(name, timeout=_PATIENCE)
        text: bytes = api.logs(name, stdout=True, stderr=True)
        return text[:_MOST_TEXT].decode("utf-8", "replace")
