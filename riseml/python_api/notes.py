"""What a call says about its run beside riseml.yml: a note, and which variables of the environment it may send."""

from __future__ import annotations

from collections.abc import Sequence

from riseml.base.annotations import read_text
from riseml.base.errors import UsageError


def read_message(message: str | None) -> str | None:
    """Return the note on a run; None: the call says nothing.

    Raises:
        UsageError: it is empty, too long, or no text.
    """
    if message is None:
        return None
    if not isinstance(message, str) or not message.strip():
        raise UsageError(f"message is {message!r}", "write what the run is for, or leave message out")
    return read_text("note", message)


def read_allowed(names: Sequence[str]) -> list[str]:
    """Return the names of variables that riseml.yml may pass on.

    Raises:
        UsageError: they are no list of names.
    """
    if isinstance(names, str):
        raise UsageError("allow_env is a text", f'write allow_env=["{names}"]')
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise UsageError(f"allow_env is {names!r}, not a list of names", 'write allow_env=["WANDB_API_KEY"]')
    return list(names)
