"""Errors from the body of a refusal. Any program may have written the body, so that each field is checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from riseml.base import errors
from riseml.base.errors import RisemlError

if TYPE_CHECKING:
    from riseml.spec.yaml.problems import Problem

_LARGEST_CODE = 255  # largest exit code of a process


def make_error(body: Mapping[str, Any]) -> RisemlError:
    """Return the error that the server raised, from the body of its answer.

    Raises:
        ValueError: no server of riseml writes such a body.
    """
    if not isinstance(body, Mapping):
        raise ValueError("the error has no fields")
    if body.get("problems"):
        from riseml.spec.yaml.problems import SpecError

        return SpecError([_read_problem(row) for row in _check(body["problems"], list)])
    kind = _check(body.get("kind"), str)
    message = _check(body.get("message"), str)
    hint = _check(body.get("hint"), str | None)
    error_class = vars(errors).get(kind)
    if isinstance(error_class, type) and issubclass(error_class, RisemlError):
        return error_class(message, hint)
    error = RisemlError(message, hint)
    code = body.get("exit_code")
    if isinstance(code, int) and 0 < code <= _LARGEST_CODE:  # 0: a refusal is never a success
        error.exit_code = int(code)
    return error


def _read_problem(row: Any) -> Problem:
    from riseml.spec.yaml.problems import Problem, Severity

    fields = _check(row, dict)
    texts = {name: _check(fields.get(name), str) for name in ("file", "path", "problem", "hint")}
    places = {name: _check(fields.get(name), int) for name in ("line", "column")}
    return Problem(**texts, **places, severity=Severity(fields.get("severity")))


def _check(value: Any, kind: Any) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"a field of the error is of the type {type(value).__name__}")
    return value
