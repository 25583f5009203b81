"""Commands and ports of a job that is a process of this machine."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import psutil

from riseml.base.stream_messages import CommandRequest
from riseml.executors.base import NotThere, PortClosed
from riseml.executors.job_streams import JobStream, NoControl, RawCodec
from riseml.executors.supervision.command_runner import complete_order
from riseml.executors.supervision.job_processes import list_job_processes
from riseml.executors.supervision.job_records import SupervisorRecord, runs_now
from riseml.executors.supervision.runner_streams import RunnerCodec, RunnerControl, make_runner_order

_RUNNER = "riseml.executors.supervision.command_runner"
_CONNECT = 5.0  # seconds to connect to a port of this machine
_END = 10.0  # seconds that a runner gets to end everything


class _RunnerProcess(RunnerControl):
    """The process of a runner."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        # A thread waits, so that no zombie is left, and each caller sees the runner's end.
        threading.Thread(target=process.wait, name="command-runner", daemon=True).start()

    def end(self) -> None:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END)


def open_process_command(record: SupervisorRecord | None, folder: Path, request: CommandRequest) -> JobStream:
    """Start a command with the variables of a job's main process, in a folder.

    Raises:
        NotThere: the job does not run.
    """
    if record is None or record.has_ended or not runs_now(record):
        raise NotThere("the job does not run")
    try:
        runner = complete_order(make_runner_order(request), str(folder), record.pid, record.main)
    except OSError:
        raise NotThere("the job does not run") from None
    server_end, runner_end = socket.socketpair()
    with runner_end:
        process = subprocess.Popen(
            [sys.executable, "-m", _RUNNER],
            stdin=runner_end.fileno(),
            stdout=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
    server_end.sendall(json.dumps(runner).encode() + b"\n")
    return JobStream(server_end, RunnerCodec(), _RunnerProcess(process))


def open_process_port(record: SupervisorRecord | None, port: int) -> JobStream:
    """Connect to a port on which a process of the job listens. Ports of other processes are not the job's.

    Raises:
        NotThere: the job does not run.
        PortClosed: no process of the job listens there.
    """
    if record is None or record.has_ended or not runs_now(record):
        raise NotThere("the job does not run")
    for address in _find_listeners(record, port):
        with suppress(OSError):
            connection = socket.create_connection((address, port), _CONNECT)
            connection.settimeout(None)
            return JobStream(connection, RawCodec(), NoControl())
    raise PortClosed(f"no process of the job listens on port {port}", permanent=True)


def _find_listeners(record: SupervisorRecord, port: int) -> list[str]:
    """Return the addresses at which processes of the job listen on this port."""
    addresses: list[str] = []
    for process in list_job_processes(record):
        with suppress(psutil.Error):
            for connection in process.net_connections("tcp"):
                if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port:
                    addresses.append(
                        {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(connection.laddr.ip, connection.laddr.ip)
                    )
    return addresses
