"""Calls at the door of a role, with and without its token; and what a role uses, from its records."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from riseml.base.errors import Unreachable
from riseml.base.names import JobName
from riseml.executors.base import NotThere, PortClosed
from riseml.executors.slurm.gang_folder import GangFolder, GangFolders, GangKey
from riseml.executors.slurm.role_access import RoleMeter, find_gpus, open_role_port, read_processor_time
from riseml.executors.slurm.role_use import UseRecorder

ROLE = JobName("train")
TABLE = """index, uuid, name, driver_version, pci.bus_id, memory.total [MiB], memory.used [MiB], utilization.gpu [%], \
temperature.gpu, power.draw [W], power.limit [W]
0, GPU-a, Tesla T4, 550.54.14, 00000000:00:04.0, 15360 MiB, 1024 MiB, 50 %, 40, 30.00 W, 70.00 W
1, GPU-b, Tesla T4, 550.54.14, 00000000:00:05.0, 15360 MiB, 0 MiB, 0 %, 35, 10.00 W, 70.00 W
"""


@pytest.fixture
def folder(tmp_path: Path) -> GangFolder:
    """A gang of one role that runs."""
    folders = GangFolders(tmp_path)
    folders.make_experiment(4)
    made = folders.open_gang(GangKey(4, 1))
    made.make()
    order = {"token": "secret", "workdir": str(tmp_path)}
    made.write_gang({"token": "secret", "roles": [{"role": ROLE, "mem": 100}]}, {ROLE: order})
    return made


@contextmanager
def open_door(folder: GangFolder) -> Iterator[int]:
    """Give the port of the door of the role; this process stands for its wrapper and its command."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        program = [sys.executable, str(folder.path / "role_server.py"), str(folder.path), ROLE, str(os.getpid())]
        process = subprocess.Popen(program, stdin=listener.fileno())
        port = listener.getsockname()[1]
        write_state(folder, {"started_at": 1.0, "host": "127.0.0.1", "door": port, "node": "n1"})
        yield port
        process.kill()
        process.wait()


@pytest.fixture
def door(folder: GangFolder) -> Iterator[int]:
    """The port of the door of the role."""
    with open_door(folder) as port:
        yield port


def write_state(folder: GangFolder, record: dict[str, object]) -> None:
    """Write what the supervisor says of the role."""
    (folder.path / "state.json").write_text(json.dumps({"roles": {ROLE: record}}))


def connect(host: str, port: int) -> socket.socket:
    """Connect to the door."""
    return socket.create_connection((host, port))


def test_a_caller_without_the_token_gets_nothing(folder: GangFolder, door: int) -> None:
    with socket.create_connection(("127.0.0.1", door)) as stranger:
        challenge = stranger.makefile().readline()
        assert len(challenge) == 33
        call = {"request": '{"command": ["id"]}', "nonce": "1", "proof": challenge.strip()}
        stranger.sendall(json.dumps(call).encode() + b"\n")
        assert stranger.recv(99) == b""
    with pytest.raises(PortClosed):
        open_role_port(folder, ROLE, 9, connect)


def test_a_caller_that_sends_a_byte_now_and_then_is_cut_off(folder: GangFolder) -> None:
    program = folder.path / "role_server.py"
    program.write_text(program.read_text().replace("_PATIENCE = 20 ", "_PATIENCE = 1 "))
    with open_door(folder) as port, socket.create_connection(("127.0.0.1", port)) as stranger:
        assert len(stranger.makefile().readline()) == 33
        for _ in range(200):
            if select.select([stranger], [], [], 0.1)[0]:
                break
            stranger.sendall(b"x")
        assert select.select([stranger], [], [], 0)[0], "the door still waits"


def test_a_program_that_does_not_know_the_token_is_not_a_door(folder: GangFolder) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.sendall(b"0" * 32 + b"\n" + b'{"proof": "guess", "error": ""}\n')
        write_state(folder, {"started_at": 1.0, "host": "n1", "door": 1, "node": "n1"})
        with pytest.raises(Unreachable, match="another program listens there"):
            open_role_port(folder, ROLE, 80, lambda *_: ours)


def test_what_a_role_uses_is_read_from_its_records_while_it_runs(folder: GangFolder) -> None:
    write_state(folder, {"started_at": 1.0, "host": "n1", "door": 1, "node": "n1"})
    meter = RoleMeter(folder, ROLE)
    assert meter.read_use() is None
    recorder = UseRecorder(str(folder.path), ROLE, {"every": 0.5})
    recorder.record_use(os.getppid())
    sample = meter.read_use()
    assert sample is not None
    assert (sample.mem_used > 1 << 20, sample.mem_total, sample.gpu) == (True, 100 << 20, None)
    assert meter.read_use() is None, "there is nothing new"
    assert read_processor_time(folder, ROLE) > 0
    (machine,) = GangFolders(folder.path.parents[1]).list_machines(4)
    assert machine["system"] == "Linux"
    late = {**folder.read_use(ROLE), "at": time.time() - 3600}
    (folder.path / f"{ROLE}.use").write_text(json.dumps(late))
    with pytest.raises(NotThere):
        read_processor_time(folder, ROLE)
    write_state(folder, {"started_at": 1.0, "finished_at": 2.0})
    with pytest.raises(NotThere):
        meter.read_use()


def test_the_gpus_of_a_role_are_those_that_it_may_use() -> None:
    (one,) = find_gpus({"gpu_table": TABLE, "gpus": "1"})
    assert (one.gpu.uuid, one.gpu.driver) == ("GPU-b", "550.54.14")
    assert len(find_gpus({"gpu_table": TABLE, "gpus": ""})) == 2
    assert find_gpus({"gpu_table": "NVIDIA-SMI has failed", "gpus": "0"}) == ()
    assert find_gpus({}) == ()
