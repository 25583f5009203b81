"""The copies of data on a host in memory: the fake of `capabilities.HostData`."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Generator, Iterator
from dataclasses import field

from riseml.base.errors import EngineError, RisemlError
from riseml.base.records import dataclass
from riseml.executors.capabilities import DataVolume

_FOLDER = "data"


@dataclass(slots=True)
class MemoryData:
    """Volumes by their names, each with its files.

    Example:
        data.troubles.append(EngineError("no space left", permanent=True))  # the next archive meets it
    """

    volumes: dict[str, dict[str, bytes]] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)  # volumes that a container mounts
    troubles: list[RisemlError] = field(default_factory=list)  # errors, each of which interrupts one archive
    archives: int = 0  # how many archives have arrived

    def list_volumes(self) -> frozenset[str]:
        return frozenset(self.volumes)

    def make_volume(self, volume: DataVolume) -> None:
        self.volumes.setdefault(volume.name, {})

    def write_tar(self, volume: DataVolume, tar: Iterator[bytes]) -> None:
        data = b"".join(tar)
        if self.troubles:
            raise self.troubles.pop(0)
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive:
                file = archive.extractfile(member)
                if file is not None:
                    self.volumes[volume.name][member.name] = file.read()
        self.archives += 1

    def read_tar(self, volume: DataVolume) -> Generator[bytes, None, None]:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for path, content in self.volumes[volume.name].items():
                member = tarfile.TarInfo(f"{_FOLDER}/{path}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        yield buffer.getvalue()

    def remove_volume(self, name: str) -> None:
        if name in self.used:
            raise EngineError(f"a container uses the volume {name}")
        self.volumes.pop(name, None)
