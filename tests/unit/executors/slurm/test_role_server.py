"""Calls at the door of a role, without its token or too slow."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from riseml.executors.base import PortClosed
from riseml.executors.slurm.gang_folder import GangFolder
from riseml.executors.slurm.role_access import open_role_port
from tests.unit.executors.slurm.role_states import ROLE, write_state


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
