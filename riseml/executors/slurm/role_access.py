"""Streams into roles, through the server of a role (`role_server`), and the use of roles, from its records.

The server connects to the node directly, or through the login node. It uses no srun, so the controller may be down. A
port needs one connection, and a command needs no step of its own.
"""

from __future__ import annotations

import json
import secrets
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import field
from datetime import UTC, datetime
from typing import Any

from riseml.base.errors import EngineError, Unreachable
from riseml.base.names import JobName
from riseml.base.records import dataclass
from riseml.base.stream_messages import CommandRequest
from riseml.executors.base import NotThere, PortClosed
from riseml.executors.capabilities import GpuReading
from riseml.executors.gangs import JobMachine
from riseml.executors.gpus.nvidia_smi import UnknownField, parse_table
from riseml.executors.job_streams import JobStream, NoControl, RawCodec
from riseml.executors.slurm.gang_folder import GangFolder, GangFolders
from riseml.executors.slurm.gang_lines import is_proven, prove, read_line
from riseml.executors.slurm.role_server import CLOSED, GONE
from riseml.executors.supervision.runner_streams import RunnerCodec, RunnerControl, make_runner_order
from riseml.model import JobKey, Sample, Traffic

Connect = Callable[[str, int], socket.socket]
"""Connects to a port of a node; raises OSError or Unreachable."""

_MIB = 2**20
_PATIENCE = 30.0  # seconds for the role's server to answer: it may be starting
_BETWEEN = 0.5  # seconds between two checks for a new reading
_LATE_END = 10.0  # seconds until the server sees the end of a role whose command was killed with it
_STALE = 20.0  # seconds after which the next reading of a role is missing


class RoleAccess:
    """Gives access to the running roles of a cluster; an implementation of `JobAccess`, `MachineLister` and
    `UseMeasurer`.

    Args:
        folders: of the gangs.
        connect: connects to a port of a node.
        describe: returns what runs jobs there, for people.
    """

    def __init__(self, folders: GangFolders, connect: Connect, describe: Callable[[], str]) -> None:
        self._roles = folders
        self._connect = connect
        self._describe = describe
        self._never = threading.Event()

    def open_command(self, key: JobKey, request: CommandRequest) -> JobStream:
        return open_role_command(self._roles.find_gang(key), key.job, request, self._connect)

    def open_port(self, key: JobKey, port: int) -> JobStream:
        return open_role_port(self._roles.find_gang(key), key.job, port, self._connect)

    def measure_processor_time(self, key: JobKey) -> float:
        return read_processor_time(self._roles.find_gang(key), key.job)

    def open_meter(self, key: JobKey) -> RoleMeter:
        return RoleMeter(self._roles.find_gang(key), key.job)

    def sample(self, key: JobKey) -> Iterator[Sample]:
        """Yield the new readings of a role until it ends; see `Executor.sample`."""
        meter = self.open_meter(key)
        while True:
            try:
                sample = meter.read_use()
            except NotThere:
                return
            if sample is not None:
                yield sample
            self._never.wait(_BETWEEN)

    def list_machines(self, experiment: int) -> tuple[JobMachine, ...]:
        version = self._describe()
        machines: dict[str, JobMachine] = {}
        for record in self._roles.list_machines(experiment):
            node = record["node"]
            runs = f"{version}, {record['system']} {record['kernel']}"
            before = machines[node].gpus if node in machines else ()
            gpus = {gpu.id: gpu for gpu in (*before, *(reading.gpu for reading in find_gpus(record)))}
            machines[node] = JobMachine(node, runs, tuple(gpus.values()))
        return tuple(machines[node] for node in sorted(machines))


class _RoleCommand(RunnerControl):
    """The runner of a command in a role, which the wrapper kills with the role."""

    def __init__(self, folder: GangFolder, role: JobName) -> None:
        self._folder = folder
        self._role = role

    def find_exit_code(self) -> int | None:
        end = time.monotonic() + _LATE_END
        never = threading.Event()
        while time.monotonic() < end:
            try:
                read_running(self._folder, self._role)
            except NotThere:
                return 128 + signal.SIGKILL
            never.wait(_BETWEEN)
        raise NotThere("the connection to the command broke")


def open_role_command(folder: GangFolder, role: JobName, request: CommandRequest, connect: Connect) -> JobStream:
    """Start a command in a role, with its variables and its folder.

    Raises:
        NotThere: the role does not run.
        Unreachable: its node cannot be reached.
    """
    connection, error = _call(folder, role, make_runner_order(request), connect)
    if error == GONE:
        connection.close()
        raise NotThere("the job does not run")
    return JobStream(connection, RunnerCodec(), _RoleCommand(folder, role))


def open_role_port(folder: GangFolder, role: JobName, port: int, connect: Connect) -> JobStream:
    """Connect to a port on which a process of the role listens.

    Raises:
        NotThere: the role does not run.
        PortClosed: no process of it listens there.
        Unreachable: its node cannot be reached.
    """
    connection, error = _call(folder, role, {"port": port}, connect)
    if error == CLOSED:
        connection.close()
        raise PortClosed(f"no process of the job listens on port {port}", permanent=True)
    return JobStream(connection, RawCodec(), NoControl())


def read_running(folder: GangFolder, role: JobName) -> dict[str, Any]:
    """Return the record of a role that runs.

    Raises:
        NotThere: it does not.
    """
    record: dict[str, Any] = folder.read_state().get("roles", {}).get(role, {})
    if "started_at" not in record or "finished_at" in record:
        raise NotThere("the job does not run")
    return record


def read_processor_time(folder: GangFolder, role: JobName) -> float:
    """Return the seconds of processor time that a role has used.

    Raises:
        NotThere: it does not run, or its node has written nothing for long.
    """
    read_running(folder, role)
    use = folder.read_use(role)
    if not use or time.time() - use["at"] > 2 * use["every"] + _STALE:
        raise NotThere("the node has not reported for a long time what the job uses")
    return float(use["cpu"])


@dataclass(slots=True)
class RoleMeter:
    """Reports what a role uses, from the records of its wrapper."""

    folder: GangFolder
    role: JobName
    _before: dict[str, Any] = field(default_factory=dict)

    def read_use(self) -> Sample | None:
        """Return what the role has used since the previous reading, or since its start; None: no new reading."""
        record = read_running(self.folder, self.role)
        use = self.folder.read_use(self.role)
        before = self._before or {"at": use.get("began", record["started_at"])}
        if not use or use["at"] - before["at"] <= 0:
            return None
        self._before = use
        mem = next((role["mem"] for role in self.folder.read_plan()["roles"] if role["role"] == self.role), 0)
        return _make_sample(use, before, mem * _MIB)


def find_gpus(record: dict[str, Any]) -> tuple[GpuReading, ...]:
    """Return the GPUs of a role from its record; without nvidia-smi on its node none."""
    try:
        readings = parse_table(record.get("gpu_table", "")) if record.get("gpu_table") else ()
    except (UnknownField, EngineError):
        return ()
    names = [name for name in record.get("gpus", "").split(",") if name]
    return tuple(reading for reading in readings if not names or reading.gpu.id in names or reading.gpu.uuid in names)


def _make_sample(use: dict[str, Any], before: dict[str, Any], memory: int) -> Sample:
    seconds = use["at"] - before["at"]
    cpu, read, written = (
        max(0.0, (use[name] - before.get(name, 0.0)) / seconds) for name in ("cpu", "disk_read", "disk_write")
    )
    gpus = find_gpus(use)
    percents = [reading.percent for reading in gpus if reading.percent is not None]
    return Sample(
        at=datetime.fromtimestamp(use["at"], UTC),
        cpu=cpu * 100,
        mem_used=int(use["memory"]),
        mem_total=memory,
        gpu=sum(percents) / len(percents) if percents else None,
        gpu_mem_used=sum(reading.mem_used or 0 for reading in gpus) if gpus else None,
        gpu_mem_total=sum(reading.gpu.mem for reading in gpus) * _MIB if gpus else None,
        traffic=Traffic(disk_read=read, disk_write=written),
    )


def _call(folder: GangFolder, role: JobName, request: dict[str, Any], connect: Connect) -> tuple[socket.socket, str]:
    """Call the server of a role, and return the open connection with its answer to the request."""
    record = read_running(folder, role)
    host = str(record["host"])
    port = int(record["door"])
    try:
        connection = connect(host, port)
    except OSError as error:
        raise _explain_failure(folder, role, f"node {record['node']} ({host}:{port}): {error}") from error
    try:
        connection.settimeout(_PATIENCE)
        answer = _introduce(connection, folder.read_plan()["token"], request)
    except (OSError, ValueError) as error:
        connection.close()
        raise _explain_failure(folder, role, f"node {record['node']} gave no answer: {error}") from error
    connection.settimeout(None)
    return connection, answer


def _introduce(connection: socket.socket, token: str, request: dict[str, Any]) -> str:
    """Prove that this side knows the token of the gang, and that the other side does; return its answer.

    Raises:
        OSError, ValueError: the other side does not know the token, or does not answer.
    """
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    challenge = read_line(connection).decode().strip()
    nonce = secrets.token_hex(16)
    text = json.dumps(request)
    proof = prove(token, "caller", challenge, text)
    connection.sendall(json.dumps({"request": text, "nonce": nonce, "proof": proof}).encode() + b"\n")
    answer = json.loads(read_line(connection))
    if not isinstance(answer, dict) or not is_proven(answer.get("proof"), token, "door", challenge, nonce):
        raise ValueError("another program listens there")
    return str(answer["error"])


def _explain_failure(folder: GangFolder, role: JobName, message: str) -> EngineError | Unreachable:
    """Return the error of a call that failed: the role has just ended, or its node cannot be reached."""
    try:
        read_running(folder, role)
    except NotThere as error:
        return error
    hint = "riseml's server, or the `login` of pool.yml, must reach any port of the nodes, as login nodes usually do"
    return Unreachable(message, hint)
