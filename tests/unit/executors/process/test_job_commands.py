"""Commands and ports of a job that is a process of this machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from riseml.base.stream_messages import Channel, ChannelData, CommandExit, CommandRequest, StreamMessage
from riseml.executors.base import NotThere, PortClosed
from riseml.executors.job_streams import JobStream
from riseml.executors.process.job_commands import open_process_command, open_process_port
from riseml.executors.supervision.job_records import SupervisorRecord, load_record
from tests.support.ports import find_free_port
from tests.support.waiting import DEADLINE, wait_for
from tests.unit.executors.running_jobs import run_job

ENDED = SupervisorRecord("s", 7, 9, "b", exit_code=0)
LISTENER = """\
import os, socket
door = socket.create_server(("127.0.0.1", 0))
with open("port.new", "w") as file:
    file.write(str(door.getsockname()[1]))
os.rename("port.new", "port")
caller, _ = door.accept()
caller.sendall(b"hello")
caller.recv(1)
"""


def read_to_end(stream: JobStream) -> list[StreamMessage]:
    """Return every message of a stream."""
    messages: list[StreamMessage] = []
    with stream.socket as door:
        door.settimeout(DEADLINE)
        while data := door.recv(65536):
            messages += stream.codec.decode(data)
    stream.control.end()
    return messages


def test_a_command_has_the_variables_and_the_folder_of_its_job(tmp_path: Path) -> None:
    with run_job(tmp_path, "sleep 600", NAME="of the job") as record:
        order = CommandRequest(("/bin/sh", "-c", 'echo "$NAME in $PWD"; exit 3'))
        messages = read_to_end(open_process_command(record, tmp_path, order))
    output = b"".join(message.content for message in messages if isinstance(message, ChannelData))
    assert output.decode() == f"of the job in {tmp_path}\n"
    assert messages[-1] == CommandExit(3)


def test_a_port_is_reached_only_where_the_job_listens(tmp_path: Path) -> None:
    program = tmp_path / "listener.py"
    program.write_text(LISTENER)
    with run_job(tmp_path, f"{sys.executable} {program}") as record:
        wait_for("it listens", (tmp_path / "port").exists, DEADLINE)
        with pytest.raises(PortClosed):
            open_process_port(record, find_free_port())
        stream = open_process_port(record, int((tmp_path / "port").read_text()))
        with stream.socket as door:
            assert stream.codec.decode(door.recv(5)) == [ChannelData(Channel.OUTPUT, b"hello")]


@pytest.mark.parametrize("record", [None, ENDED], ids=["no record", "a job that has ended"])
def test_a_job_that_does_not_run_takes_no_commands(record: SupervisorRecord | None, tmp_path: Path) -> None:
    with pytest.raises(NotThere):
        open_process_command(record, tmp_path, CommandRequest(("id",)))
    with pytest.raises(NotThere):
        open_process_port(record, 80)


def test_a_record_whose_process_is_gone_is_no_job(tmp_path: Path) -> None:
    with run_job(tmp_path, "sleep 600") as record:
        pass
    assert load_record(tmp_path) is not None
    with pytest.raises(NotThere):
        open_process_command(record, tmp_path, CommandRequest(("id",)))
