"""The relay to a port, run here with each of the tools that an image may have."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from riseml.executors.docker.exec_ports import CONNECTED, NO_TOOL, make_relay
from tests.support.ports import find_free_port
from tests.support.waiting import DEADLINE

CLOSED = 98


def start(tmp_path: Path, tools: list[str], port: int) -> subprocess.Popen[bytes]:
    """Start a relay that finds these programs alone; it tries an address where nothing listens first."""
    for tool in tools:
        found = sys.executable if tool == "python3" else shutil.which(tool)  # a shim of pyenv needs other programs
        if found is None:  # a machine for `make unit` may lack Perl; the images of jobs have what they have
            pytest.skip(f"{tool} is not here")
        (tmp_path / tool).symlink_to(found)
    for module in ("socket", "threading"):  # of a project, in whose folder a relay runs
        (tmp_path / f"{module}.py").write_text("raise SystemExit('a module of the project')")
    command = make_relay(port, ("127.0.0.2", "127.0.0.1"))
    pipe = subprocess.PIPE
    variables = {"PATH": str(tmp_path), "PYTHONPATH": str(tmp_path)}
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, env=variables, cwd=tmp_path)


@pytest.mark.parametrize("tools", [["python3"], ["perl"], ["bash", "cat"]], ids=["python", "perl", "bash"])
def test_a_relay_copies_both_ways(tmp_path: Path, tools: list[str]) -> None:
    content = bytes(range(256)) * 1024
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(DEADLINE)
        relay = start(tmp_path, tools, server.getsockname()[1])
        door, _ = server.accept()
        with door:
            door.settimeout(DEADLINE)
            door.sendall(b"first")
            assert relay.stdout is not None
            assert relay.stdout.read(len(CONNECTED) + 5) == CONNECTED + b"first"
            assert relay.stdin is not None
            relay.stdin.write(content)
            relay.stdin.flush()
            got = b""
            while len(got) < len(content):
                got += door.recv(65536)
            assert got == content
            door.sendall(content)
        out, _ = relay.communicate(timeout=DEADLINE)
    assert (out, relay.returncode) == (content, 0)


@pytest.mark.parametrize("tools", [["python3"], ["perl"], ["bash", "cat"]], ids=["python", "perl", "bash"])
def test_a_relay_says_that_nothing_listens(tmp_path: Path, tools: list[str]) -> None:
    relay = start(tmp_path, tools, find_free_port())
    assert relay.communicate(timeout=DEADLINE)[0] == b""
    assert relay.returncode == CLOSED


def test_an_image_without_tools_has_no_relay(tmp_path: Path) -> None:
    relay = start(tmp_path, [], 80)
    relay.communicate(timeout=DEADLINE)
    assert relay.returncode == NO_TOOL
