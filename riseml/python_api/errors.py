"""The errors of calls, with their hints where Python prints them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from riseml.base.errors import (
    Conflict,
    ExperimentFailed,
    Interrupted,
    NotFound,
    Refused,
    RisemlError,
    Unreachable,
    UsageError,
)
from riseml.spec.yaml.problems import SpecError

__all__ = [
    "Conflict",
    "ExperimentFailed",
    "Interrupted",
    "NotFound",
    "Refused",
    "RisemlError",
    "SpecError",
    "Unreachable",
    "UsageError",
]


@contextmanager
def add_hints() -> Iterator[None]:
    """Give an error its hint as a note, which Python prints below the message."""
    try:
        yield
    except RisemlError as error:
        note = f"hint: {error.hint}"
        if error.hint and note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        raise
