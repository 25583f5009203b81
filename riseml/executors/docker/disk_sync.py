"""Flush the data of a volume to the disk of its host. An engine reports that it has unpacked an archive while the files
may still be only in memory. A host that loses power at this moment has empty files under their names.

The host may have no image yet, so riseml brings the program: a few machine instructions without any library, in a
container that has the volume, but neither network nor capabilities.
"""

from __future__ import annotations

import errno
import io
import os
import struct
import tarfile

import docker
from docker.errors import ImageNotFound

from riseml.errors import EngineError
from riseml.executors.docker import labels
from riseml.executors.docker.containers import describe_binds, describe_mounts
from riseml.executors.docker.helper_container import remove_helper
from riseml.model import Mount
from riseml.planning.launch import DATA
from riseml.records import dataclass

_IMAGE, _FILE = "riseml/sync:1", "sync"
_PATIENCE = 1800  # seconds: the host may have many gigabytes to write to a slow disk
_BASE = 0x400000  # address of the program in memory
_HEADERS = struct.calcsize("<16sHHIQQQIHHHHHH") + struct.calcsize("<IIQQQQQQ")  # bytes before the instructions
_EXECUTABLE, _LOAD, _READ_AND_RUN, _PAGE = 2, 1, 5, 0x10000  # of the ELF format


@dataclass(frozen=True, slots=True)
class Processor:
    """The instructions for one kind of processor: `fd = open(DATA); exit(-syncfs(fd))`, or `exit(-fd)` without it.

    The path follows the last instruction.
    """

    elf_machine: int
    instructions: str  # hexadecimal, one system call after the other


PROCESSORS = {
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
"""By the name that an engine has for the processor of its host."""


def sync_volume(api: docker.APIClient, server: str, mount: Mount) -> None:
    """Return when everything in a volume, which is mounted at DATA, is on the disk of the host.

    Does nothing on a host with another processor than those of `PROCESSORS`.

    Raises:
        EngineError: the host cannot write it.
    """
    processor = PROCESSORS.get(str(api.version()["Arch"]))
    if processor is None:
        return
    _ensure_image(api, processor)
    name = f"riseml-{server[:8]}-sync-{mount.source}"
    remove_helper(api, name)  # a server that was killed may have left it
    request = {
        "Image": _IMAGE,
        "Cmd": [f"/{_FILE}"],
        "Labels": {labels.SERVER: server},
        "HostConfig": {
            "Mounts": describe_mounts((mount,)),
            "Binds": describe_binds((mount,)),
            "NetworkMode": "none",
            "ReadonlyRootfs": True,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
        },
    }
    api.create_container_from_config(request, name)
    try:
        api.start(name)
        code = int(api.wait(name, timeout=_PATIENCE)["StatusCode"])
    finally:
        remove_helper(api, name)
    if code:
        reason = os.strerror(code) if code in errno.errorcode else f"exit code {code}"
        raise EngineError(f"the host cannot write the data to its disk: {reason}")


def make_program(processor: Processor) -> bytes:
    """Return the program as a file of the ELF format."""
    code = bytes.fromhex(processor.instructions) + DATA.encode() + b"\0"
    size, ident = _HEADERS + len(code), b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian, version 1
    start, table = _BASE + _HEADERS, struct.calcsize("<16sHHIQQQIHHHHHH")
    kind = (_EXECUTABLE, processor.elf_machine, 1)
    head = struct.pack("<16sHHIQQQIHHHHHH", ident, *kind, start, table, 0, 0, table, _HEADERS - table, 1, 64, 0, 0)
    segment = struct.pack("<IIQQQQQQ", _LOAD, _READ_AND_RUN, 0, _BASE, _BASE, size, size, _PAGE)
    return head + segment + code


def _ensure_image(api: docker.APIClient, processor: Processor) -> None:
    try:
        api.inspect_image(_IMAGE)
    except ImageNotFound:
        buffer, program = io.BytesIO(), make_program(processor)
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            entry = tarfile.TarInfo(_FILE)
            entry.size, entry.mode = len(program), 0o555
            tar.addfile(entry, io.BytesIO(program))
        repository, _, tag = _IMAGE.partition(":")
        api.import_image_from_data(buffer.getvalue(), repository=repository, tag=tag)
