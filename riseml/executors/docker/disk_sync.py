"""Flush the data of a volume to the disk of its host. An engine reports that it has unpacked an archive while the files
may still be only in memory. A host that loses power at this moment has empty files under their names.
"""

from __future__ import annotations

import errno
import os

import docker

from riseml.base.errors import EngineError
from riseml.executors.docker.helpers import Helpers
from riseml.executors.docker.tiny_program import Processor, ProgramRun, TinyProgram, run_program
from riseml.model import Mount
from riseml.planning.launch import DATA

_PATIENCE = 1800  # seconds: the host may have many gigabytes to write to a slow disk

# the program: `fd = open(DATA); exit(-syncfs(fd))`, or `exit(-fd)` without the file
_PROCESSORS = {
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
_PROGRAM = TinyProgram("sync", "riseml/sync:1", DATA, _PROCESSORS)


def sync_volume(api: docker.APIClient, helpers: Helpers, mount: Mount) -> None:
    """Return when everything in a volume, which is mounted at DATA, is on the disk of the host.

    Does nothing on a host with a processor for which riseml has no instructions.

    Raises:
        EngineError: the host cannot write it.
    """
    code = run_program(api, _PROGRAM, ProgramRun(helpers, f"sync-{mount.source}", _PATIENCE, (mount,)))
    if code:
        reason = os.strerror(code) if code in errno.errorcode else f"exit code {code}"
        raise EngineError(f"the host cannot write the data to its disk: {reason}")
