"""Files on a host that the server does not see, written and read through a container that never runs.

The engine unpacks an archive into the mounts of a container whether it runs or not, with the owners in the archive. The
image of the container is empty, so nothing has to be present on the host.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import docker
from docker.errors import APIError, ImageNotFound, NotFound

from riseml.executors.base import Output
from riseml.executors.capabilities import Finding
from riseml.executors.docker import labels
from riseml.executors.docker.containers import describe_binds, describe_mounts
from riseml.executors.docker.output_parts import check_output_parts, inspect_privacy, raise_for_link
from riseml.executors.transports.engine_client import raise_for_refusal
from riseml.model import Mount

_EMPTY = "riseml/empty:1"
_MISSING, _CONFLICT = 404, 409
_MOST_READ = 1 << 20  # bytes of one file of an image


def make_output(api: docker.APIClient, server: str, experiment: int, output: Output) -> None:
    """Create an experiment's output folder.

    Raises:
        APIError: the engine cannot mount something that the jobs mount.
        EngineError: a part of the folder is a link, or another user made it or could replace it (permanent).
    """
    with _helper(api, server, f"output-{experiment}", (output.root, *output.others)) as name:
        check_output_parts(api, name, output)
        try:
            send_archive(api, name, output.root.target, output.tar, noOverwriteDirNonDir="1")
        except APIError as error:
            raise_for_link(error, output)
            raise


def write_file(api: docker.APIClient, server: str, mount: Mount, name: str, content: bytes) -> None:
    """Write a small file into a folder or volume of the host."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = len(content), 0o600
        tar.addfile(entry, io.BytesIO(content))
    with _helper(api, server, f"write-{name}", (mount,)) as helper:
        send_archive(api, helper, mount.target, buffer.getvalue())


def read_file(api: docker.APIClient, server: str, mount: Mount, name: str) -> bytes | None:
    """Return the content of a small file in a folder or volume of the host; None: there is no such file."""
    with _helper(api, server, f"read-{name}", (mount,)) as helper:
        try:
            stream, _ = api.get_archive(helper, f"{mount.target}/{name}")
        except NotFound:
            return None
        with tarfile.open(fileobj=io.BytesIO(b"".join(stream))) as tar:
            file = tar.extractfile(tar.getmembers()[0])
            return None if file is None else file.read()


def read_image_file(api: docker.APIClient, server: str, image: str, path: str) -> bytes | None:
    """Return the content of a small file of an image, at most 1 MiB; None: no such file, or no such image."""
    name = f"riseml-{server[:8]}-packages-{hashlib.sha256(image.encode()).hexdigest()[:12]}"
    _remove_helper(api, name)
    request = {"Image": image, "Cmd": ["-"], "Labels": {labels.SERVER: server}, "HostConfig": {"NetworkMode": "none"}}
    try:
        api.create_container_from_config(request, name)
        stream, _ = api.get_archive(name, path)
        with tarfile.open(fileobj=io.BytesIO(b"".join(stream))) as tar:
            member = tar.next()
            file = None if member is None or not member.isreg() else tar.extractfile(member)
            return None if file is None else file.read(_MOST_READ)
    except NotFound:
        return None
    finally:
        _remove_helper(api, name)


def check_privacy(api: docker.APIClient, server: str, mount: Mount, name: str) -> Finding | None:
    """Return a finding when other users of the host reach outputs; `write_file` has written the file `name`."""
    with _helper(api, server, f"privacy-{name}", (mount,)) as helper:
        return inspect_privacy(api, helper, mount, name)


def send_archive(
    api: docker.APIClient, container: str, path: str, tar: bytes | Iterator[bytes], **options: str
) -> None:
    """Unpack a tar below a path of a container. The SDK's own call has no deadline.

    Args:
        api: the engine.
        container: its name.
        path: an existing folder of the container.
        tar: the archive.
        options: further ones of the engine's API.

    Raises:
        APIError: the engine refused.
    """
    url = f"{api.base_url}/v{api.api_version}/containers/{container}/archive"
    raise_for_refusal(api.put(url, params={"path": path, **options}, data=tar, timeout=api.timeout))


@contextmanager
def _helper(api: docker.APIClient, server: str, purpose: str, seen: tuple[Mount, ...]) -> Iterator[str]:
    """Give the name of a container with these mounts that is never started; it is removed afterwards."""
    name = f"riseml-{server[:8]}-{purpose}"
    _ensure_empty_image(api)
    _remove_helper(api, name)  # a server that was killed may have left it
    request: dict[str, Any] = {
        "Image": _EMPTY,
        "Cmd": ["-"],
        "Labels": {labels.SERVER: server},
        "HostConfig": {"Mounts": describe_mounts(seen), "Binds": describe_binds(seen), "NetworkMode": "none"},
    }
    api.create_container_from_config(request, name)
    try:
        yield name
    finally:
        _remove_helper(api, name)


def _ensure_empty_image(api: docker.APIClient) -> None:
    try:
        api.inspect_image(_EMPTY)
    except ImageNotFound:
        repository, _, tag = _EMPTY.partition(":")
        api.import_image_from_data(bytes(2 * tarfile.BLOCKSIZE), repository=repository, tag=tag)


def _remove_helper(api: docker.APIClient, name: str) -> None:
    try:
        api.remove_container(name, force=True)
    except APIError as error:
        if error.status_code not in (_MISSING, _CONFLICT):
            raise
