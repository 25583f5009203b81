"""How executors run `job_programs.stack_reader`, and read its answer."""

from __future__ import annotations

import json
from collections.abc import Sequence

from riseml.base.errors import EngineError
from riseml.base.records import dataclass
from riseml.diagnosis.process_rows import parse_answer
from riseml.diagnosis.spy_dump import UnreadableDump
from riseml.diagnosis.stacks import ProcessStacks
from riseml.job_programs import read_program
from riseml.job_programs.process_facts import MOST_DUMPS, WHOLE_PATIENCE

MOST_ANSWER = 4 * MOST_DUMPS
"""Bytes of an answer: JSON in JSON may be longer than what it holds."""

ANSWER_PATIENCE = WHOLE_PATIENCE + 15.0
"""Seconds for an answer; the reader itself ends before."""


@dataclass(frozen=True, slots=True)
class StackRequest:
    """What is read of each process."""

    native: bool = False  # True: the frames of libraries in C, C++ and Rust, too
    variables: bool = False  # True: the values of local variables, too


def make_reader_command(python: str, spy: str, root: int | str, request: StackRequest) -> Sequence[str]:
    """Return the command that prints the stacks of a job.

    Args:
        python: Python 3.6 or newer, where the job runs.
        spy: the path of py-spy there.
        root: pid of a process above the job, or `role`.
        request: what is read.
    """
    order = {"spy": spy, "root": root, "native": request.native, "variables": request.variables}
    return (python, "-IS", "-c", read_program("stack_reader"), json.dumps(order))


@dataclass(frozen=True, slots=True)
class ReaderAnswer:
    """What the reader printed."""

    code: int  # its exit code
    output: bytes
    errors: bytes


def read_answer(job: str, answer: ReaderAnswer, folder: str) -> tuple[ProcessStacks, ...]:
    """Return the processes of a job.

    Args:
        job: its name.
        answer: of the reader.
        folder: in which the job runs.

    Raises:
        EngineError: it failed.
    """
    if answer.code != 0:
        words = answer.errors.decode("utf-8", "replace").strip().splitlines()
        raise EngineError(
            f"the stacks of {job} could not be read: {words[-1] if words else f'exit code {answer.code}'}"
        )
    try:
        return parse_answer(job, answer.output, folder)
    except UnreadableDump as error:
        raise EngineError(f"the stacks of {job} could not be read: {error}") from error
