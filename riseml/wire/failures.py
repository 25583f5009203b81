"""Refusals: why a request failed."""

from __future__ import annotations

from typing import Literal, NotRequired

from typing_extensions import TypedDict


class ProblemShape(TypedDict):
    """One problem of a riseml.yml."""

    file: str  # the riseml.yml, or the option of the command line
    line: int  # from 1
    column: int  # from 1
    path: str  # `train.resources.mem`; empty when the text is not YAML
    problem: str  # what is wrong
    hint: str  # what to write instead; may be empty
    severity: Literal["error", "warning"]


class FailureBody(TypedDict):
    """Why the request failed."""

    kind: str  # name of the class in `riseml.base.errors`
    message: str
    hint: str | None  # what to do next
    exit_code: int  # what the command exits with
    problems: NotRequired[list[ProblemShape]]  # problems of the riseml.yml in the request


class ErrorLocation(TypedDict):
    """Where in a file the cause of an error is."""

    file: str  # the riseml.yml, or the option of the command line
    line: int  # from 1
    column: int  # from 1
    path: str  # `train.resources.mem`; empty when the text is not YAML


class ErrorView(TypedDict):
    """Why a command failed, for programs."""

    code: str  # name of the class in `riseml.base.errors`: `NotFound`
    exit_code: int  # of the command
    cause: str  # what is wrong; of a file with several errors, the first one
    location: ErrorLocation | None  # of the first error of a file; None: the cause is in no file
    fix: str | None  # what to do next; None: nothing to add
    problems: list[ProblemShape]  # all problems of the file; empty for other errors


class CommandError(TypedDict):
    """The last line on standard error of a command that failed, with `--json`."""

    error: ErrorView


class Failure(TypedDict):
    """The body of every answer with a status of 400 or more."""

    error: FailureBody
