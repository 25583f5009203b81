"""Output folders on a host whose files the server does not see: by way of a container that never runs.

The engine unpacks an archive into a container's mounts whether it runs or not, with the owners that the archive names.
Its image is empty, so that this needs nothing on the host.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import docker
from docker.errors import APIError, ImageNotFound, NotFound

from riseml.executors.base import Output
from riseml.executors.docker import labels
from riseml.executors.docker.containers import binds, mounts
from riseml.executors.transports.engine_client import raise_for_refusal
from riseml.model import Mount

_EMPTY = "riseml/empty:1"


def make(api: docker.APIClient, server: str, experiment: int, output: Output) -> None:
    """Make an experiment's output folder, and see that everything its jobs will mount is there."""
    with _helper(api, server, f"output-{experiment}", (output.root, *output.others)) as name:
        _put(api, name, output.root.target, output.tar)


def write(api: docker.APIClient, server: str, mount: Mount, name: str, text: bytes) -> None:
    """Write a small file into a folder of the host, or into a volume."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        entry = tarfile.TarInfo(name)
        entry.size = len(text)
        tar.addfile(entry, io.BytesIO(text))
    with _helper(api, server, f"write-{name}", (mount,)) as helper:
        _put(api, helper, mount.target, buffer.getvalue())


def read(api: docker.APIClient, server: str, mount: Mount, name: str) -> bytes | None:
    """What is in a small file there; None when there is no such file."""
    with _helper(api, server, f"read-{name}", (mount,)) as helper:
        try:
            stream, _ = api.get_archive(helper, f"{mount.target}/{name}")
        except NotFound:
            return None
        with tarfile.open(fileobj=io.BytesIO(b"".join(stream))) as tar:
            file = tar.extractfile(tar.getmembers()[0])
            return None if file is None else file.read()


@contextmanager
def _helper(api: docker.APIClient, server: str, what: str, seen: tuple[Mount, ...]) -> Iterator[str]:
    """A container with these mounts that is never started, for as long as it is needed."""
    name = f"riseml-{server[:8]}-{what}"
    _provide_image(api)
    _discard(api, name)  # a server that died may have left it
    request: dict[str, Any] = {
        "Image": _EMPTY,
        "Cmd": ["-"],
        "Labels": {labels.SERVER: server},
        "HostConfig": {"Mounts": mounts(seen), "Binds": binds(seen), "NetworkMode": "none"},
    }
    api.create_container_from_config(request, name)
    try:
        yield name
    finally:
        _discard(api, name)


def _provide_image(api: docker.APIClient) -> None:
    try:
        api.inspect_image(_EMPTY)
    except ImageNotFound:
        repository, _, tag = _EMPTY.partition(":")
        api.import_image_from_data(bytes(2 * tarfile.BLOCKSIZE), repository=repository, tag=tag)


def _discard(api: docker.APIClient, name: str) -> None:
    try:
        api.remove_container(name, force=True)
    except APIError as error:
        if error.status_code not in (404, 409):
            raise


def _put(api: docker.APIClient, name: str, path: str, tar: bytes) -> None:
    url = f"{api.base_url}/v{api.api_version}/containers/{name}/archive"
    raise_for_refusal(api.put(url, params={"path": path}, data=tar, timeout=api.timeout))
