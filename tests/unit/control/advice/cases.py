"""Ends of jobs with the output of real tools, and the advice about them (`ends.txt`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from riseml.base.states import Reason
from riseml.control.advice.advise import KNOWN_FAILURES, advise
from riseml.control.advice.known_failure import FailedJob, KnownFailure, recognise

TABLE = Path(__file__).with_name("ends.txt")
CV2 = "ModuleNotFoundError: No module named 'cv2'"
CV2_ADVICE = "`cv2` is not installed in the environment: add `pip install opencv-python-headless` to `train.install`"
RESET = "ConnectionResetError: [Errno 104] Connection reset by peer"


Case = tuple[str, FailedJob, str]
"""The name of the row, the job, and the advice."""


def _read_cases() -> list[Case]:
    cases = []
    for block in TABLE.read_text(encoding="utf-8").split("\n===== ")[1:]:
        title, _, rest = block.partition("\n")
        printed, _, advice = rest.partition(">>>>>\n")
        name, how = title.split()
        limit = 512 if name == "out-of-memory-limit" else None
        reason, code = (Reason[how], None) if how.isupper() else (Reason.EXIT_CODE, int(how))
        cases.append((name, FailedJob("4.train", reason, code, printed.split("\n")[:-1], limit, 1024), advice.strip()))
    return cases


_CASES = _read_cases()


def list_cases(table: Sequence[KnownFailure]) -> list[Case]:
    """Return the ends that rows of a table explain."""
    names = {failure.name for failure in table}
    return [case for case in _CASES if case[0] in names]


def assert_advice(case: Case) -> None:
    """Assert that an end is recognised, and answered with its advice."""
    name, job, advice = case
    recognised = recognise(job, KNOWN_FAILURES)
    assert recognised is not None
    assert (recognised.failure.name, advise(job, list)) == (name, advice)


def make_failed(*lines: str, code: int = 1, name: str = "4.master", reason: Reason = Reason.EXIT_CODE) -> FailedJob:
    """Return a job that ended after these lines."""
    return FailedJob(name, reason, code, lines, mem=1024)


def advise_lines(*lines: str) -> str:
    """Return the advice about a job that ended after these lines."""
    return advise(make_failed(*lines), list)
