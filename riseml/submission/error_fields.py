"""An error in the fields that programs read: its code, its cause, where it is, and what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from riseml.spec.yaml.problems import Problem, Severity, SpecError

if TYPE_CHECKING:
    from riseml import wire
    from riseml.base.errors import RisemlError


def list_error_fields(error: RisemlError) -> wire.ErrorView:
    """Return an error as `--json` and agents get it; of a file with several errors the first one leads."""
    problems = error.problems if isinstance(error, SpecError) else ()
    first = next((problem for problem in problems if problem.severity is Severity.ERROR), None)
    return {
        "code": type(error).__name__,
        "exit_code": error.exit_code,
        "cause": error.message if first is None else first.problem,
        "location": None if first is None else _locate(first),
        "fix": (error.hint if first is None else first.hint) or None,
        "problems": [problem.to_fields() for problem in problems],
    }


def _locate(problem: Problem) -> wire.ErrorLocation:
    return {"file": problem.file, "line": problem.line, "column": problem.column, "path": problem.path}
