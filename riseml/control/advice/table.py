"""Every known failure, in one table. Of two rows that match the same line, the first explains the job."""

from __future__ import annotations

from riseml.control.advice.connection_failures import CONNECTION_FAILURES
from riseml.control.advice.environment_failures import ENVIRONMENT_FAILURES
from riseml.control.advice.known_failure import KnownFailure
from riseml.control.advice.machine_failures import MACHINE_FAILURES
from riseml.control.advice.python_failures import PYTHON_FAILURES

KNOWN_FAILURES: tuple[KnownFailure, ...] = (
    *MACHINE_FAILURES,
    *PYTHON_FAILURES,
    *ENVIRONMENT_FAILURES,
    *CONNECTION_FAILURES,
)
