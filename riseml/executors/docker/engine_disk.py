"""How full the disk is on which an engine keeps its images.

On this machine the kernel says it. On another one a container asks for the file system below its own root, which is the
engine's: the program is a few machine instructions, and its exit code is the answer.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path

from riseml.base.records import dataclass
from riseml.executors.capabilities import DiskUse
from riseml.executors.docker.code_layers import stores_compressed
from riseml.executors.docker.helpers import Helpers
from riseml.executors.docker.tiny_program import Processor, ProgramRun, TinyProgram, run_program
from riseml.executors.this_machine.disk_use import measure_disk

_PATIENCE = 60  # seconds: a disk that is nearly full may be slow

# the program: `statfs("/"); exit(per cent of blocks - bfree in blocks - bfree + bavail, rounded up)`; 200: it fails
_PROCESSORS = {
    "amd64": Processor(
        62,
        "4881ec00010000 b889000000 488d3d3c000000 4889e6 0f05 85c0 7527"  # statfs(path, rsp); not 0: the failure
        "488b4c2410 482b4c2418 488b5c2420 4801cb 7413"  # rcx = blocks - bfree; rbx = bavail + rcx; 0: the failure
        "486bc164 31d2 4801d8 48ffc8 48f7f3 89c7 eb05"  # edi = (rcx * 100 + rbx - 1) / rbx; jump to the end
        "bfc8000000"  # edi = 200
        "b83c000000 0f05",  # exit(edi)
    ),
    "arm64": Processor(
        183,
        "ff0304d1 80020010 e1030091 680580d2 010000d4 a00100b5"  # statfs(path, sp); not 0: to the failure
        "e20b40f9 e30f40f9 420003cb e31340f9 630002ab e0000054"  # x2 = blocks - bfree; x3 = bavail + x2; 0: the failure
        "840c80d2 407c049b 0000038b 000400d1 0008c39a 02000014"  # x0 = (x2 * 100 + x3 - 1) / x3; to the end
        "001980d2"  # x0 = 200
        "a80b80d2 010000d4",  # exit(x0)
    ),
}
_PROGRAM = TinyProgram("disk", "riseml/disk:1", "/", _PROCESSORS)


@dataclass(frozen=True, slots=True)
class EngineDisk:
    """The disk of an engine; an implementation of `DiskMeter`."""

    helpers: Helpers

    def read_disk(self) -> DiskUse | None:
        with self.helpers.engine.api(patient=True) as api:
            if self.helpers.engine.is_local:
                info = api.info()
                is_own_folder = info["Name"] == socket.gethostname() and not stores_compressed(info)
                if is_own_folder:  # else it is another machine's, or containerd's
                    with suppress(OSError):  # the engine has its own file system, or its folder is not for this user
                        return measure_disk(Path(info["DockerRootDir"]))
            code = run_program(api, _PROGRAM, ProgramRun(self.helpers, "disk", _PATIENCE))
        return DiskUse(code) if code is not None and code <= 100 else None
