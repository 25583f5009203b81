"""The stacks of the roles of a gang, read beside each role on its node, as the user of the jobs."""

from __future__ import annotations

import secrets
import shutil
import time
from pathlib import Path

from riseml.base.errors import EngineError
from riseml.base.names import JobName
from riseml.base.records import dataclass
from riseml.base.stream_messages import Channel, ChannelData, CommandExit, CommandRequest
from riseml.diagnosis.stacks import ProcessStacks
from riseml.executors.job_stacks import (
    MOST_ANSWER,
    ProfileRequest,
    ReaderAnswer,
    RecordedProfile,
    StackRequest,
    find_patience,
    make_reader_command,
    read_answer,
    read_profile,
)
from riseml.executors.job_streams import JobStream
from riseml.executors.slurm.gang_folder import GangFolders, translate_os_errors
from riseml.executors.slurm.role_access import RoleAccess
from riseml.executors.this_machine.spy import find_spy, read_spy_version
from riseml.model import JobKey

_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class RoleStacks:
    """Reads the stacks of roles; an implementation of `StackReader`."""

    access: RoleAccess
    folders: GangFolders
    python: str  # Python of the nodes

    def read_stacks(self, key: JobKey, request: StackRequest) -> tuple[ProcessStacks, ...]:
        folder = self.folders.find_gang(key).code_path(key.job)
        return read_answer(key.job, self._run_reader(key, request), str(folder))

    def record_profile(self, key: JobKey, request: ProfileRequest) -> RecordedProfile:
        folder = self.folders.find_gang(key).code_path(key.job)
        return read_profile(key.job, self._run_reader(key, request), str(folder))

    def _run_reader(self, key: JobKey, request: StackRequest | ProfileRequest) -> ReaderAnswer:
        with translate_os_errors(str(self.folders.root)):
            spy = share_spy(self.folders.root)
        command = make_reader_command(self.python, str(spy), "role", request)
        stream = self.access.open_command(key, CommandRequest(tuple(command)))
        try:
            return _read_output(stream, key.job, find_patience(request))
        finally:
            stream.socket.close()
            stream.control.end()


def share_spy(folder: Path) -> Path:
    """Copy this machine's py-spy into the shared folder, and return its path there."""
    shared = folder / f".py-spy-{read_spy_version()}"
    if not shared.exists():
        fresh = shared.with_name(f"{shared.name}.{secrets.token_hex(8)}")  # several roles are read at once
        shutil.copyfile(find_spy(), fresh)
        fresh.chmod(0o700)
        fresh.replace(shared)
    return shared


def _read_output(stream: JobStream, job: JobName, patience: float) -> ReaderAnswer:
    """Return the exit code of a command, its output and its errors.

    Raises:
        EngineError: it takes too long, or prints too much.
    """
    outputs = {Channel.OUTPUT: bytearray(), Channel.ERRORS: bytearray()}
    deadline = time.monotonic() + patience
    received = stream.received
    while True:
        for message in stream.codec.decode(received):
            if isinstance(message, ChannelData):
                outputs[message.channel] += message.content
            elif isinstance(message, CommandExit):
                return ReaderAnswer(message.code, bytes(outputs[Channel.OUTPUT]), bytes(outputs[Channel.ERRORS]))
        if sum(map(len, outputs.values())) > MOST_ANSWER:
            raise EngineError(f"the stacks of {job} are larger than {MOST_ANSWER >> 20} MiB")
        stream.socket.settimeout(max(0.001, deadline - time.monotonic()))
        try:
            received = stream.socket.recv(_CHUNK)
        except TimeoutError:
            raise EngineError(f"the stacks of {job} could not be read in {patience:.0f} s") from None
        except OSError as error:
            raise EngineError(f"the stacks of {job} could not be read: {error}") from error
        if not received:
            raise EngineError(f"the stacks of {job} could not be read: the connection to its node ended")
