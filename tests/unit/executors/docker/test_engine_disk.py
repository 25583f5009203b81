"""How full the disk of an engine is: the kernel says it on this machine, a program elsewhere."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from riseml.executors.capabilities import DiskUse
from riseml.executors.docker.engine_disk import EngineDisk
from riseml.executors.docker.helpers import HelperRegistry, Helpers
from tests.unit.executors.docker.held_containers import SERVER, FakeEngine, ProgramEngine


class ThisMachineEngine(ProgramEngine):
    """An engine with a folder for its images."""

    def __init__(self, name: str, folder: str) -> None:
        super().__init__(code=42)
        self.answer = {"Name": name, "DockerRootDir": folder, "DriverStatus": []}

    def info(self) -> dict[str, Any]:
        return self.answer


def read_disk(api: ProgramEngine, *, is_local: bool) -> DiskUse | None:
    engine = FakeEngine(api)
    engine.is_local = is_local
    return EngineDisk(Helpers(engine, SERVER, HelperRegistry())).read_disk()


@pytest.mark.parametrize(
    ("code", "use"),
    [(0, DiskUse(0)), (100, DiskUse(100)), (101, None), (200, None)],
    ids=["empty", "full", "odd", "failed"],
)
def test_the_exit_code_of_the_program_is_the_answer_of_another_machine(code: int, use: DiskUse | None) -> None:
    assert read_disk(ProgramEngine(code), is_local=False) == use


def test_a_host_without_instructions_says_nothing() -> None:
    assert read_disk(ProgramEngine(arch="riscv64"), is_local=False) is None


@pytest.mark.parametrize(
    ("name", "folder", "asks_kernel"),
    [(socket.gethostname(), "/", True), (socket.gethostname(), "/none/docker", False), ("another", "/", False)],
    ids=["its own folder", "a file system of its own", "an engine behind a socket of this machine"],
)
def test_the_kernel_is_asked_where_the_folder_of_the_engine_is_on_this_machine(
    name: str, folder: str, *, asks_kernel: bool
) -> None:
    api = ThisMachineEngine(name, folder)
    use = read_disk(api, is_local=True)
    assert use is not None
    assert bool(use.device) is asks_kernel
    assert (use.percent == 42 and use.device == "") is not asks_kernel
