"""The one error tree. Each class knows the exit code of the command line and the status of the HTTP door.

RisemlError
  x UsageError              2 / 400   the call itself is wrong
    - SpecError             2 / 422   riseml.yml has problems (all of them are listed)
  x NotFound                3 / 404   no such experiment, job or project
  x Refused                 4 / 403   not allowed, or over a limit
    - Conflict              4 / 409   it contradicts what is already there
    - TooLarge              4 / 413   more than is taken at once
  x Unreachable             5 / 503   the server or an engine does not answer
    - EngineError           5 / 502   the engine answered, and refused
    - StoreError            5 / 503   the store cannot be used, now or at all
  x ExperimentFailed        1 / 409   the experiment ended, and not well
  x Interrupted           130 / 409   killed by somebody, or detached

A message says what happened and where; the hint says what to do next.
"""

from __future__ import annotations


class RisemlError(Exception):
    """Base of everything that a person is told about.

    Args:
        message: one sentence, what happened and where.
        hint: what to do next; None when there is nothing to add.
    """

    exit_code = 1
    http_status = 500

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(RisemlError):
    """The call is wrong: an option, an ID, a value."""

    exit_code = 2
    http_status = 400


class NotFound(RisemlError):
    """The thing that was named is not there."""

    exit_code = 3
    http_status = 404


class Refused(RisemlError):
    """The caller may not do this, or it goes beyond a limit."""

    exit_code = 4
    http_status = 403


class Conflict(Refused):
    """The request contradicts what is already there."""

    http_status = 409


class TooLarge(Refused):
    """More bytes or files than are taken at once."""

    http_status = 413


class Unreachable(RisemlError):
    """A server or an engine does not answer. This says nothing about what it did."""

    exit_code = 5
    http_status = 503


class EngineError(Unreachable):
    """The engine answered and refused. `permanent` means that asking again is useless."""

    http_status = 502

    def __init__(self, message: str, hint: str | None = None, *, permanent: bool = False) -> None:
        super().__init__(message, hint)
        self.permanent = permanent


class StoreError(Unreachable):
    """The store cannot be used: it is locked, full, damaged, away, or another server's.

    A write that ended so may have been done, when the store went away in the middle of it.
    """


class ExperimentFailed(RisemlError):
    """The experiment ended, and not well."""

    exit_code = 1
    http_status = 409


class Interrupted(RisemlError):
    """Killed by a person, or the person left."""

    exit_code = 130
    http_status = 409
