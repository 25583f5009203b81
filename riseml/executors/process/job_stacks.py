"""The stacks of a job that is processes of this machine, read by a program beside the server, as the same user."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from riseml.base.errors import EngineError
from riseml.base.names import JobName
from riseml.diagnosis.stacks import ProcessStacks
from riseml.executors.base import NotThere
from riseml.executors.job_stacks import (
    ProfileRequest,
    ReaderAnswer,
    RecordedProfile,
    StackRequest,
    find_patience,
    make_reader_command,
    read_answer,
    read_profile,
)
from riseml.executors.supervision.job_records import SupervisorRecord, runs_now
from riseml.executors.this_machine.spy import find_spy


def read_process_stacks(
    record: SupervisorRecord | None, job: JobName, folder: Path, request: StackRequest
) -> tuple[ProcessStacks, ...]:
    """Return what the processes of a job do, whose code is in a folder.

    Raises:
        NotThere: the job does not run.
        EngineError: nothing could be read.
    """
    answer = _run_reader(record, job, request)
    return read_answer(job, answer, str(folder))


def record_process_profile(
    record: SupervisorRecord | None, job: JobName, folder: Path, request: ProfileRequest
) -> RecordedProfile:
    """Record where a job is for some seconds.

    Raises:
        NotThere: the job does not run.
        EngineError: nothing could be recorded.
    """
    return read_profile(job, _run_reader(record, job, request), str(folder))


def _run_reader(record: SupervisorRecord | None, job: JobName, request: StackRequest | ProfileRequest) -> ReaderAnswer:
    if record is None or record.has_ended or not runs_now(record):
        raise NotThere("the job does not run")
    command = make_reader_command(sys.executable, str(find_spy()), record.pid, request)
    patience = find_patience(request)
    try:
        answer = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, cwd="/", timeout=patience, check=False
        )
    except subprocess.TimeoutExpired:
        raise EngineError(f"the processes of {job} could not be read in {patience:.0f} s") from None
    return ReaderAnswer(answer.returncode, answer.stdout, answer.stderr)
