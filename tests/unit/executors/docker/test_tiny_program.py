"""Programs of a few machine instructions: how they reach a host, and that they do what they are for."""

from __future__ import annotations

import io
import os
import platform
import subprocess
import tarfile
from pathlib import Path

import pytest

from riseml.executors.docker import data_volumes, engine_disk
from riseml.executors.docker.helpers import HelperRegistry, Helpers
from riseml.executors.docker.tiny_program import ProgramRun, TinyProgram, run_program
from riseml.executors.this_machine.disk_use import measure_disk
from tests.unit.executors.docker.held_containers import SERVER, FakeEngine, ProgramEngine

DISK = engine_disk._PROGRAM
SYNC = data_volumes._SYNC_PROGRAM
# The product has instructions for these two processors, and runs nothing on another one (see below). CI has amd64.
ARCH = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), "")


def run(api: ProgramEngine, program: TinyProgram) -> int | None:
    return run_program(api, program, ProgramRun(Helpers(FakeEngine(api), SERVER, HelperRegistry()), "disk", 60))


def unpack_program(api: ProgramEngine, program: TinyProgram, folder: Path) -> Path:
    """Write the file of a program as the engine got it; return its path."""
    with tarfile.open(fileobj=io.BytesIO(api.imported[program.image])) as tar:
        file = tar.extractfile(program.name)
        assert file is not None
        path = folder / program.name
        path.write_bytes(file.read())
    path.chmod(0o700)
    return path


def test_a_program_gets_an_image_once_and_its_container_can_do_nothing_else() -> None:
    api = ProgramEngine(code=7)
    assert [run(api, DISK), run(api, DISK)] == [7, 7]
    assert list(api.imported) == ["riseml/disk:1"]
    assert api.rows == {}, "its containers are gone"
    host = api.requests[0]["HostConfig"]
    assert (host["NetworkMode"], host["ReadonlyRootfs"], host["CapDrop"]) == ("none", True, ["ALL"])
    assert host["SecurityOpt"] == ["no-new-privileges"]


def test_a_host_with_another_processor_runs_nothing() -> None:
    api = ProgramEngine(arch="riscv64")
    assert run(api, DISK) is None
    assert (api.imported, api.requests) == ({}, [])


# On a host with another processor riseml runs nothing: see the test above.
@pytest.mark.skipif(not ARCH, reason="there are no instructions for this processor")
def test_the_program_that_measures_a_disk_answers_as_this_machine_does(tmp_path: Path) -> None:
    api = ProgramEngine(arch=ARCH)
    run(api, DISK)
    program = unpack_program(api, DISK, tmp_path)
    use = measure_disk(Path("/"))
    assert use is not None
    assert abs(subprocess.run([program], check=False).returncode - use.percent) <= 1, "others write meanwhile"


@pytest.mark.skipif(not ARCH, reason="there are no instructions for this processor")
def test_the_program_that_writes_a_volume_to_its_disk_answers_with_the_error(tmp_path: Path) -> None:
    api = ProgramEngine(arch=ARCH)
    run(api, SYNC)
    code = subprocess.run([unpack_program(api, SYNC, tmp_path)], check=False).returncode
    assert code == (0 if os.path.exists(SYNC.path) else 2), "ENOENT"
