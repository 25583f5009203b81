"""The error tree of riseml. Each class has the exit code of the command line and the status of the HTTP API.

RisemlError
  x UsageError              2 / 400   the call itself is wrong
    - SpecError             2 / 422   riseml.yml has problems (all of them are listed)
  x NotFound                3 / 404   there is no such experiment, job or project
  x Refused                 4 / 403   not allowed, or over a limit
    - Conflict              4 / 409   it contradicts what exists already
    - TooLarge              4 / 413   more than one request may have
    - TooSlow               4 / 408   nothing comes of a request any more
    - Unauthenticated         4 / 401   the server does not know who calls
    - TooManyAttempts         4 / 429   too many keys of one address were not valid
  x Unreachable             5 / 503   the server or an engine does not answer
    - EngineError           5 / 502   the engine answered and refused
    - StoreError            5 / 503   the store cannot be used, now or ever
    - StandbyServer         5 / 503   another server answers; this one waits to take its place
  x ExperimentFailed        1 / 409   the experiment failed
  x Interrupted           130 / 409   a user killed it, or detached

A message says what happened and where; the hint says what to do next.
"""

from __future__ import annotations

import errno

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class RisemlError(Exception):
    """Base of all errors that users see.

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
    """What the user named does not exist."""

    exit_code = 3
    http_status = 404


class Refused(RisemlError):
    """The user may not do this, or it is over a limit."""

    exit_code = 4
    http_status = 403


class Conflict(Refused):
    """The request contradicts what exists already."""

    http_status = 409


class TooLarge(Refused):
    """The request has more bytes or files than one request may have."""

    http_status = 413


class TooSlow(Refused):
    """The client sends a request so slowly that the server does not wait for the rest."""

    http_status = 408


class Unauthenticated(Refused):
    """The server does not know who calls: no key or session came with the request, or none that it takes."""

    http_status = 401


class TooManyAttempts(Refused):
    """Too many attempts of one address to log in have failed. `retry_after`: seconds until it may try again."""

    http_status = 429

    def __init__(self, message: str, hint: str | None = None, *, retry_after: int = 60) -> None:
        super().__init__(message, hint)
        self.retry_after = retry_after


class Unreachable(RisemlError):
    """A server or an engine does not answer. It may have done what was asked."""

    exit_code = 5
    http_status = 503


class EngineError(Unreachable):
    """The engine answered and refused. `permanent`: the same request can never succeed."""

    http_status = 502

    def __init__(self, message: str, hint: str | None = None, *, permanent: bool = False) -> None:
        super().__init__(message, hint)
        self.permanent = permanent


class DiskFull(EngineError):
    """No room was left on a disk: of a host, or of the server."""


class PortReset(RisemlError):
    """A program of a job broke one connection to its port. Its other connections go on."""

    exit_code = 5
    http_status = 502


class StoreError(Unreachable):
    """The store cannot be used: it is locked, full, damaged, not reachable, or belongs to another server.

    A write that raises this may have been done, when the connection broke after it.
    """


class StandbyServer(Unreachable):
    """The server that was asked waits to take the place of another one, and has done nothing."""


class LogUnreadable(RisemlError):
    """The file of a log exists, and the server cannot read it."""


class ExperimentFailed(RisemlError):
    """The experiment failed."""

    exit_code = 1
    http_status = 409


class Interrupted(RisemlError):
    """A user killed the experiment, or left the command with Ctrl-C."""

    exit_code = 130
    http_status = 409


def advise_on_write(error: OSError) -> str:
    """Return what the user can do about a file or folder that cannot be written."""
    if error.errno in _FULL:
        return "free some space there"
    return "name a folder that is there, and in which you may write"
