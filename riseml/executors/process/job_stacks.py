"""The stacks of a job that is processes of this machine, read by a program beside the server, as the same user."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from riseml.base.errors import EngineError
from riseml.base.names import JobName
from riseml.diagnosis.stacks import ProcessStacks
from riseml.executors.base import NotThere
from riseml.executors.job_stacks import ANSWER_PATIENCE, ReaderAnswer, StackRequest, make_reader_command, read_answer
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
    if record is None or record.has_ended or not runs_now(record):
        raise NotThere("the job does not run")
    command = make_reader_command(sys.executable, str(find_spy()), record.pid, request)
    try:
        answer = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, cwd="/", timeout=ANSWER_PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        raise EngineError(f"the stacks of {job} could not be read in {ANSWER_PATIENCE:.0f} s") from None
    return read_answer(job, ReaderAnswer(answer.returncode, answer.stdout, answer.stderr), str(folder))
