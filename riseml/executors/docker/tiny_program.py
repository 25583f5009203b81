"""Run a few machine instructions without any library in a container of a host, which may have no image yet.

The program is an image of its own: one file in the ELF format. Its container has neither network nor capabilities.
"""

from __future__ import annotations

import io
import struct
import tarfile
from collections.abc import Mapping, Sequence

import docker
from docker.errors import ImageNotFound

from riseml.base.records import dataclass
from riseml.executors.docker.containers import describe_binds, describe_mounts
from riseml.executors.docker.helpers import Helpers
from riseml.model import Mount

_BASE = 0x400000  # address of the program in memory
_HEADERS = struct.calcsize("<16sHHIQQQIHHHHHH") + struct.calcsize("<IIQQQQQQ")  # bytes before the instructions

# constants of the ELF format
_EXECUTABLE = 2
_LOAD = 1
_READ_AND_RUN = 5
_PAGE = 0x10000


@dataclass(frozen=True, slots=True)
class Processor:
    """The instructions for one kind of processor. The path of the program follows the last instruction."""

    elf_machine: int
    instructions: str  # hexadecimal


@dataclass(frozen=True, slots=True)
class TinyProgram:
    """A program that answers with its exit code."""

    name: str  # name of its file
    image: str  # with a tag
    path: str  # that it opens
    processors: Mapping[str, Processor]  # by the name that an engine has for the processor of its host


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """One run of a program."""

    helpers: Helpers  # helpers of the host
    purpose: str  # a part of its container's name
    patience: int  # seconds
    mounts: Sequence[Mount] = ()


def run_program(api: docker.APIClient, program: TinyProgram, run: ProgramRun) -> int | None:
    """Return the exit code of a program; None: there are no instructions for the processor of the host.

    Raises:
        docker.errors.APIError: the engine refuses the image or the container.
    """
    processor = program.processors.get(str(api.version()["Arch"]))
    if processor is None:
        return None
    import_programs(api, program.image, {program.name: make_program_file(processor, program.path)})
    request = {
        "Image": program.image,
        "Cmd": [f"/{program.name}"],
        "HostConfig": {
            "Mounts": describe_mounts(tuple(run.mounts)),
            "Binds": describe_binds(tuple(run.mounts)),
            "NetworkMode": "none",
            "ReadonlyRootfs": True,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
        },
    }
    with run.helpers.lend(api, run.purpose, request) as name:
        api.start(name)
        return int(api.wait(name, timeout=run.patience)["StatusCode"])


def make_program_file(processor: Processor, path: str = "") -> bytes:
    """Return a program as a file of the ELF format.

    Args:
        processor: its instructions.
        path: what follows them; empty: nothing.
    """
    code = bytes.fromhex(processor.instructions) + path.encode() + b"\0"
    size = _HEADERS + len(code)
    ident = b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian, version 1
    start = _BASE + _HEADERS
    table = struct.calcsize("<16sHHIQQQIHHHHHH")
    kind = (_EXECUTABLE, processor.elf_machine, 1)
    head = struct.pack("<16sHHIQQQIHHHHHH", ident, *kind, start, table, 0, 0, table, _HEADERS - table, 1, 64, 0, 0)
    segment = struct.pack("<IIQQQQQQ", _LOAD, _READ_AND_RUN, 0, _BASE, _BASE, size, size, _PAGE)
    return head + segment + code


def import_programs(api: docker.APIClient, image: str, programs: Mapping[str, bytes]) -> None:
    """Make an image of nothing but programs, which need no library. Does nothing when the engine has it.

    Args:
        api: a client of the engine.
        image: with a tag.
        programs: the content of each file, by its name.
    """
    try:
        api.inspect_image(image)
    except ImageNotFound:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            for name, content in programs.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                entry.mode = 0o555
                tar.addfile(entry, io.BytesIO(content))
        repository, _, tag = image.partition(":")
        api.import_image_from_data(buffer.getvalue(), repository=repository, tag=tag)
