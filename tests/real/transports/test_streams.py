"""Streams into jobs over ssh and over TLS: commands, terminals, and ports through a relay in the container."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from riseml.base.errors import EngineError
from riseml.base.stream_messages import Channel, ChannelData, ChannelEnd, CommandRequest, WindowSize
from riseml.executors.base import PortClosed
from riseml.executors.capabilities import JobAccess
from riseml.executors.docker.executor import DockerExecutor
from riseml.executors.job_streams import JobStream
from riseml.executors.transports.engine_client import Engine
from riseml.model import JobKey
from riseml.spec.pool.types import Tls
from tests.real.transports.conftest import BASE, Connect, Talker
from tests.real.transports.servers import TlsEngine
from tests.support.waiting import DEADLINE

Talk = Callable[[str, str, str], Talker]
SERVER = """
import socket
door = socket.create_server(("127.0.0.1", 8888))
print("listens", flush=True)
while True:
    taken, _ = door.accept()
    got = b""
    while data := taken.recv(65536):
        got += data
    taken.sendall(b"got " + got)
    taken.close()
"""


def play(stream: JobStream, given: bytes = b"") -> dict[Channel, bytes]:
    """Send an input to its end, and return what comes back to its end."""
    found = {Channel.OUTPUT: b"", Channel.ERRORS: b""}
    with stream.socket as door:
        door.settimeout(DEADLINE)
        door.sendall(stream.codec.encode(ChannelData(Channel.INPUT, given)) or b"")
        last = stream.codec.encode(ChannelEnd(Channel.INPUT))
        if last is None:
            door.shutdown(socket.SHUT_WR)
        else:
            door.sendall(last)
        data = stream.received or door.recv(65536)
        while data:
            for piece in stream.codec.decode(data):
                assert isinstance(piece, ChannelData)
                found[piece.channel] += piece.content
            data = door.recv(65536)
    return found


def find_access(executor: DockerExecutor) -> JobAccess:
    assert executor.capabilities.access is not None
    return executor.capabilities.access


def check_commands(access: JobAccess, key: JobKey) -> None:
    """Run commands with and without a terminal, and look at what comes back."""
    content = bytes(range(256)) * 4096
    stream = access.open_command(key, CommandRequest(("/bin/sh", "-c", "cat; echo bad >&2; exit 7")))
    assert play(stream, content) == {Channel.OUTPUT: content, Channel.ERRORS: b"bad\n"}
    assert stream.control.find_exit_code() == 7
    stream.control.end()
    shell = access.open_command(key, CommandRequest((), WindowSize(33, 101), "xterm"))
    shown = play(shell, b"echo me=$0 term=$TERM; exit 5\n")[Channel.OUTPUT]
    assert b"term=xterm" in shown
    assert shell.control.find_exit_code() == 5
    shell.control.end()


@pytest.fixture
def job(far: Engine, talk: Talk, engine_url: str) -> tuple[JobAccess, JobKey]:
    """A container of this machine's engine that listens on its loopback, reached over ssh."""
    talker = talk(engine_url, BASE, f"exec python3 -c '{SERVER}'")
    return find_access(talker.executor(far)), talker.key


def test_commands_over_ssh(job: tuple[JobAccess, JobKey]) -> None:
    check_commands(*job)


def test_a_port_over_ssh_goes_through_a_relay(job: tuple[JobAccess, JobKey]) -> None:
    access, key = job
    content = bytes(range(256)) * 4096
    answer = b""
    while not answer:  # until it listens
        try:
            stream = access.open_port(key, 8888)
        except PortClosed:
            continue
        answer = play(stream, content)[Channel.OUTPUT]
        stream.control.end()
    assert answer == b"got " + content
    with pytest.raises(PortClosed):
        access.open_port(key, 7)


def test_commands_over_tls(tls_engine: TlsEngine, tls: Tls, connect: Connect, talk: Talk) -> None:
    engine = connect(f"tcp://127.0.0.1:{tls_engine.port}", tls=tls)
    talker = talk(tls_engine.url, TlsEngine.image, "exec sleep 600 2>/dev/null || while :; do :; done")
    access = find_access(talker.executor(engine))
    stream = access.open_command(talker.key, CommandRequest(("/bin/sh", "-c", "read line; echo got $line; exit 7")))
    assert play(stream, b"hello\n")[Channel.OUTPUT] == b"got hello\n"
    assert stream.control.find_exit_code() == 7
    stream.control.end()
    with pytest.raises(EngineError, match="no python3, perl, bash or nc"):
        access.open_port(talker.key, 80)
