"""One sentence about an experiment that failed, from one table of known failures. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from riseml.control.advice.connection_failures import CONNECTION_FAILURES
from riseml.control.advice.environment_failures import ENVIRONMENT_FAILURES
from riseml.control.advice.known_failure import FailedJob, FailureRole, KnownFailure, Recognised, recognise
from riseml.control.advice.machine_failures import MACHINE_FAILURES
from riseml.control.advice.python_failures import PYTHON_FAILURES

KNOWN_FAILURES: tuple[KnownFailure, ...] = (
    *MACHINE_FAILURES,
    *PYTHON_FAILURES,
    *ENVIRONMENT_FAILURES,
    *CONNECTION_FAILURES,
)
"""Of two rows that match the same line, the first explains the job."""


def advise(first: FailedJob, find_others: Callable[[], Sequence[FailedJob]]) -> str:
    """Return what ended an experiment, and what to do next; empty when the table does not know it.

    Args:
        first: the job whose failure ended the experiment.
        find_others: returns the other jobs that failed by themselves; called only when `first` has lost a connection.
    """
    failure = recognise(first, KNOWN_FAILURES)
    if failure is None:
        return ""
    if failure.failure.role is FailureRole.CAUSE:
        return _describe_failure(failure)
    causes = [(job, recognise(job, KNOWN_FAILURES)) for job in find_others()]
    for job, other in causes:
        if other is not None and other.failure.role is FailureRole.CAUSE:
            return (
                f"probably a consequence: {failure.sentence}, and {job.name} failed as well: {_describe_failure(other)}"
            )
    for job, other in causes:
        if other is None:
            return (
                f"probably a consequence: {failure.sentence}, and {job.name} failed as well,"
                f" with exit code {job.exit_code}: see `riseml logs {job.name}`"
            )
    return f"{failure.sentence}; riseml saw no other job fail: see the last lines of what it was connected to"


def _describe_failure(failure: Recognised) -> str:
    return failure.sentence if failure.certain else f"probably: {failure.sentence}"
