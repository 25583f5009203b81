"""Files on a host that the server does not see, written and read through a container that never runs.

The engine unpacks an archive into the mounts of a container whether it runs or not, with the owners in the archive. The
image of the container is empty, so the host needs no image.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import docker
from docker.errors import APIError, ImageNotFound, NotFound

from riseml.base.records import dataclass
from riseml.executors.base import Output
from riseml.executors.docker.containers import describe_binds, describe_mounts
from riseml.executors.docker.helpers import Helpers
from riseml.executors.docker.output_parts import check_output_parts, raise_for_link
from riseml.executors.transports.engine_client import raise_for_refusal
from riseml.model import Mount
from riseml.planning.image import PACKAGES_FILE, parse_packages

_EMPTY = "riseml/empty:1"
_MOST_READ = 1 << 20  # bytes of one file
_MOST_ARCHIVE = _MOST_READ + (64 << 10)  # bytes of the archive that holds it


def make_output(api: docker.APIClient, helpers: Helpers, experiment: int, output: Output) -> None:
    """Create an experiment's output folder.

    Raises:
        APIError: the engine cannot mount something that the jobs mount.
        EngineError: a part of the folder is a link, or another user made it or could replace it (permanent).
    """
    with lend_container(api, helpers, f"output-{experiment}", (output.root, *output.mounts)) as name:
        check_output_parts(api, name, output)
        try:
            send_archive(api, name, output.root.target, output.tar, noOverwriteDirNonDir="1")
        except APIError as error:
            raise_for_link(error, output)
            raise


def read_small_file(api: docker.APIClient, container: str, path: str) -> bytes | None:
    """Return the content of a file of a container; None: it is larger than 1 MiB, or no regular file.

    A job or an install step may have written a file of any size; this function reads at most 1 MiB.

    Raises:
        NotFound: there is no such file.
    """
    stream, _ = api.get_archive(container, path)
    archive = io.BytesIO()
    with closing(stream):
        for piece in stream:
            if archive.tell() + len(piece) > _MOST_ARCHIVE:
                return None
            archive.write(piece)
    archive.seek(0)
    with tarfile.open(fileobj=archive) as tar:
        member = tar.next()
        if member is None or not member.isreg() or member.size > _MOST_READ:
            return None
        file = tar.extractfile(member)
        return None if file is None else file.read()


@dataclass(frozen=True, slots=True)
class EngineFiles:
    """Files in outputs and in images of one host; an implementation of `OutputWriter` and `PackageLister`."""

    helpers: Helpers

    def update_output(self, experiment: int, output: Output) -> None:
        """Unpack the tar below the root of outputs again; see `make_output`."""
        with self.helpers.engine.api() as api:
            make_output(api, self.helpers, experiment, output)

    def list_packages(self, reference: str) -> tuple[str, ...] | None:
        """Return the output of `pip freeze` in an image; None: no such file or image, or it is larger than 1 MiB."""
        request = {"Image": reference, "Cmd": ["-"], "HostConfig": {"NetworkMode": "none"}}
        with self.helpers.engine.api(patient=True) as api:
            try:
                with self.helpers.lend(api, "packages", request) as name:
                    content = read_small_file(api, name, PACKAGES_FILE)
            except NotFound:
                return None
        return None if content is None else parse_packages(content.decode("utf-8", "replace"))


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
def lend_container(api: docker.APIClient, helpers: Helpers, purpose: str, mounts: tuple[Mount, ...]) -> Iterator[str]:
    """Give the name of a container with these mounts that is never started; it is removed afterwards."""
    _ensure_empty_image(api)
    request: dict[str, Any] = {
        "Image": _EMPTY,
        "Cmd": ["-"],
        "HostConfig": {"Mounts": describe_mounts(mounts), "Binds": describe_binds(mounts), "NetworkMode": "none"},
    }
    with helpers.lend(api, purpose, request) as name:
        yield name


def _ensure_empty_image(api: docker.APIClient) -> None:
    try:
        api.inspect_image(_EMPTY)
    except ImageNotFound:
        repository, _, tag = _EMPTY.partition(":")
        api.import_image_from_data(bytes(2 * tarfile.BLOCKSIZE), repository=repository, tag=tag)
