"""What the server reads of a role on a node: its GPUs, its use, and an answer at its door."""

from __future__ import annotations

import socket

import pytest

from riseml.base.errors import Unreachable
from riseml.executors.slurm.gang_folder import GangFolder
from riseml.executors.slurm.role_access import find_gpus, open_role_port
from tests.unit.executors.slurm.role_states import ROLE, write_state

TABLE = """index, uuid, name, driver_version, pci.bus_id, memory.total [MiB], memory.used [MiB], utilization.gpu [%], \
temperature.gpu, power.draw [W], power.limit [W]
0, GPU-a, Tesla T4, 550.54.14, 00000000:00:04.0, 15360 MiB, 1024 MiB, 50 %, 40, 30.00 W, 70.00 W
1, GPU-b, Tesla T4, 550.54.14, 00000000:00:05.0, 15360 MiB, 0 MiB, 0 %, 35, 10.00 W, 70.00 W
"""


def test_a_program_that_does_not_know_the_token_is_not_a_door(folder: GangFolder) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.sendall(b"0" * 32 + b"\n" + b'{"proof": "guess", "error": ""}\n')
        write_state(folder, {"started_at": 1.0, "host": "n1", "door": 1, "node": "n1"})
        with pytest.raises(Unreachable, match="another program listens there"):
            open_role_port(folder, ROLE, 80, lambda *_: ours)


def test_the_gpus_of_a_role_are_those_that_it_may_use() -> None:
    (one,) = find_gpus({"gpu_table": TABLE, "gpus": "1"})
    assert (one.gpu.uuid, one.gpu.driver) == ("GPU-b", "550.54.14")
    assert len(find_gpus({"gpu_table": TABLE, "gpus": ""})) == 2
    assert find_gpus({"gpu_table": "NVIDIA-SMI has failed", "gpus": "0"}) == ()
    assert find_gpus({}) == ()
