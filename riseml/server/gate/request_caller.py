"""The caller of a request: a gate sets it, and the API reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.types import Scope

from riseml.base.errors import Unauthenticated
from riseml.model import Caller

_KEY = "riseml.caller"


def set_caller(scope: Scope, caller: Caller) -> None:
    """Note who has sent a request."""
    scope[_KEY] = caller


def find_caller(scope: Mapping[str, Any]) -> Caller | None:
    """Return who has sent a request; None: no gate has said so."""
    caller = scope.get(_KEY)
    return caller if isinstance(caller, Caller) else None


def get_caller(scope: Mapping[str, Any]) -> Caller:
    """Return who has sent a request.

    Raises:
        Unauthenticated: no gate has said so.
    """
    caller = find_caller(scope)
    if caller is None:
        raise Unauthenticated("the server does not know who sends this request", "`riseml login` asks for a key")
    return caller
