"""Volumes of an engine with copies of data that the server has fetched, for hosts that do not see the server's cache.

A container that never runs mounts the volume, so that nothing has to be present on the host. A volume that riseml made
has a label. When a container mounts a missing volume, the engine makes one without the label: `demand_volumes` detects
that.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, suppress

import docker
from docker.errors import APIError, NotFound

from riseml.base.errors import EngineError
from riseml.base.names import FETCHED_VOLUME
from riseml.base.records import dataclass
from riseml.executors.base import DataGone
from riseml.executors.capabilities import DataVolume, Finding, Outcome
from riseml.executors.docker import labels
from riseml.executors.docker.helper_container import lend_container, send_archive
from riseml.executors.docker.helpers import Helpers
from riseml.executors.docker.tiny_program import Processor, ProgramRun, TinyProgram, run_program
from riseml.model import Mount
from riseml.planning.launch import DATA
from riseml.spec.pool.types import Volume

_MISSING = 404
_CONFLICT = 409
_PIECE = 1 << 18  # bytes

_SYNC_PATIENCE = 1800  # seconds: the host may have many gigabytes to write to a slow disk

# the program of `sync_volume`: `fd = open(DATA); exit(-syncfs(fd))`, or `exit(-fd)` without the file
_SYNC_PROCESSORS = {
    "amd64": Processor(
        62,
        "b802000000 488d3d1c000000 31f6 0f05 85c0 7809"  # eax = open(path, 0); negative: jump to the end
        "89c7 b832010000 0f05"  # eax = syncfs(eax)
        "f7d8 89c7 b83c000000 0f05",  # exit(-eax)
    ),
    "arm64": Processor(
        183,
        "600c8092 41010010 020080d2 080780d2 010000d4 6000f8b7"  # x0 = openat(AT_FDCWD, path, 0); negative: to the end
        "682180d2 010000d4"  # x0 = syncfs(x0)
        "e00300cb a80b80d2 010000d4",  # exit(-x0)
    ),
}
_SYNC_PROGRAM = TinyProgram("sync", "riseml/sync:1", DATA, _SYNC_PROCESSORS)


@dataclass(frozen=True, slots=True)
class EngineData:
    """The copies of one server on one engine; an implementation of `HostData`."""

    helpers: Helpers  # helpers of the engine

    def check(self) -> tuple[Finding, ...]:
        """Return the findings of `riseml pool check`; none without a volume."""
        count = len(self.list_volumes())
        text = "one volume has a copy of fetched data" if count == 1 else f"{count} volumes have copies of fetched data"
        return (Finding("copies", Outcome.OK, text),) if count else ()

    def list_volumes(self) -> frozenset[str]:
        label_filters = [labels.label_filter(labels.SERVER, self.helpers.server), labels.DATA]
        with self.helpers.engine.api() as api:
            return frozenset(row["Name"] for row in api.volumes(filters={"label": label_filters})["Volumes"] or [])

    def make_volume(self, volume: DataVolume) -> None:
        own = {labels.SERVER: self.helpers.server, labels.DATA: volume.key}
        with self.helpers.engine.api(patient=True) as api:
            api.create_volume(volume.name, driver="local", labels=own)

    def write_tar(self, volume: DataVolume, tar: Iterator[bytes]) -> None:
        mount = Mount(volume.name, DATA, volume=Volume(volume.name))
        with (
            self.helpers.engine.api(patient=True) as api,
            lend_container(api, self.helpers, f"fill-{volume.key}", (mount,)) as name,
        ):
            demand_volumes(api, name, (mount,))
            send_archive(api, name, DATA, tar)

    def read_tar(self, volume: DataVolume) -> Generator[bytes, None, None]:
        mount = Mount(volume.name, DATA, read_only=True, volume=Volume(volume.name))
        with (
            self.helpers.engine.api(patient=True) as api,
            lend_container(api, self.helpers, f"read-{volume.key}", (mount,)) as name,
        ):
            sync_volume(api, self.helpers, mount)
            stream, _ = api.get_archive(name, DATA, chunk_size=_PIECE)
            with closing(stream):
                yield from stream

    def remove_volume(self, name: str) -> None:
        with self.helpers.engine.api(patient=True) as api:
            try:
                api.remove_volume(name)
            except APIError as error:
                if error.status_code == _CONFLICT:
                    raise EngineError(f"a container uses the volume {name}") from None
                if error.status_code != _MISSING:
                    raise


def demand_volumes(api: docker.APIClient, container: str, mounts: Iterable[Mount]) -> None:
    """Check that riseml made the volumes with data that a container mounts.

    The container exists, so from now on the engine removes none of them. If the check fails, the container is removed
    together with the empty volume that the engine made for it.

    Raises:
        DataGone: riseml did not make one of them.
    """
    for mount in mounts:
        if mount.volume is not None and mount.source.startswith(FETCHED_VOLUME) and not _is_own(api, mount.source):
            api.remove_container(container, v=True, force=True)
            with suppress(APIError):  # it was never there, or another container mounts it
                api.remove_volume(mount.source)
            raise DataGone(f"the volume {mount.source}, which had its data, is gone from the host")


def sync_volume(api: docker.APIClient, helpers: Helpers, mount: Mount) -> None:
    """Return when everything in a volume, which is mounted at DATA, is on the disk of the host.

    An engine reports that it has unpacked an archive while the files may still be only in memory. A host that loses
    power at this moment has empty files under their names.

    Does nothing on a host with a processor for which riseml has no instructions.

    Raises:
        EngineError: the host cannot write it.
    """
    code = run_program(api, _SYNC_PROGRAM, ProgramRun(helpers, f"sync-{mount.source}", _SYNC_PATIENCE, (mount,)))
    if code:
        reason = os.strerror(code) if code in errno.errorcode else f"exit code {code}"
        raise EngineError(f"the host cannot write the data to its disk: {reason}")


def _is_own(api: docker.APIClient, name: str) -> bool:
    try:
        return labels.DATA in (api.inspect_volume(name).get("Labels") or {})
    except NotFound:
        return False
