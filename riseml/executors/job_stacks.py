"""How executors run `job_programs.stack_reader`, and read its answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from riseml.base.errors import EngineError
from riseml.base.records import dataclass
from riseml.diagnosis.process_rows import parse_answer
from riseml.diagnosis.spy_dump import UnreadableDump, shorten
from riseml.diagnosis.stacks import ProcessStacks
from riseml.job_programs import read_program
from riseml.job_programs.process_facts import MOST_DUMPS, PROFILE_START, WHOLE_PATIENCE

MOST_ANSWER = 4 * MOST_DUMPS
"""Bytes of an answer: JSON in JSON may be longer than what it holds."""

_START = 15.0  # seconds until the reader works
_LONGEST_TROUBLE = 500  # characters


@dataclass(frozen=True, slots=True)
class StackRequest:
    """What is read of each process."""

    native: bool = False  # True: the frames of libraries in C, C++ and Rust, too
    variables: bool = False  # True: the values of local variables, too


@dataclass(frozen=True, slots=True)
class ProfileRequest:
    """How a job is recorded."""

    seconds: int = 30
    rate: int = 100  # samples in a second
    native: bool = False  # True: the frames of libraries in C, C++ and Rust, too
    idle: bool = False  # True: threads that wait, too


@dataclass(frozen=True, slots=True)
class RecordedProfile:
    """What py-spy has recorded."""

    text: bytes  # of `py-spy record --format raw`
    processor: float  # seconds of a core that py-spy took; the processes stood still for a part of them at most


def make_reader_command(
    python: str, spy: str, root: int | str, request: StackRequest | ProfileRequest
) -> Sequence[str]:
    """Return the command that prints the stacks of a job, or its profile.

    Args:
        python: Python 3.6 or newer, where the job runs.
        spy: the path of py-spy there.
        root: pid of a process above the job, or `role`.
        request: what is read.
    """
    order: dict[str, object] = {"spy": spy, "root": root}
    if isinstance(request, ProfileRequest):
        order["profile"] = asdict(request)
    else:
        order |= {"native": request.native, "variables": request.variables}
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
    _check_answer(job, answer)
    try:
        return parse_answer(job, answer.output, folder)
    except UnreadableDump as error:
        raise EngineError(f"the stacks of {job} could not be read: {error}") from error


def read_profile(job: str, answer: ReaderAnswer, folder: str) -> RecordedProfile:
    """Return the profile of a job that runs in a folder: its files are named from there.

    Raises:
        EngineError: it failed.
    """
    _check_answer(job, answer)
    try:
        row = json.loads(answer.output)
        text = shorten_files(str(row["text"]).encode("utf-8", "replace"), folder)
        profile = RecordedProfile(text, float(row["processor"]))
        trouble = shorten(str(row["trouble"]), _LONGEST_TROUBLE)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise EngineError(f"{job} could not be recorded: the program that does it printed something else") from error
    if trouble:
        raise EngineError(f"{job} could not be recorded: {trouble}", permanent=True)
    return profile


def shorten_files(profile: bytes, folder: str) -> bytes:
    """Return a profile with the files below a folder named from there."""
    return profile.replace(f"({folder}/".encode(), b"(")


def find_patience(request: StackRequest | ProfileRequest) -> float:
    """Return the seconds for an answer; the reader itself ends before."""
    if isinstance(request, ProfileRequest):
        return request.seconds + PROFILE_START + _START
    return WHOLE_PATIENCE + _START


def _check_answer(job: str, answer: ReaderAnswer) -> None:
    if answer.code != 0:
        words = answer.errors.decode("utf-8", "replace").strip().splitlines()
        raise EngineError(
            f"the stacks of {job} could not be read: {words[-1] if words else f'exit code {answer.code}'}"
        )
