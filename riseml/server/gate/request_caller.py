"""The caller of a request: a gate sets it, and the API reads it. And who logs in with a request that has no caller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.types import Scope

from riseml.base.errors import Unauthenticated
from riseml.base.records import dataclass
from riseml.model import Caller

_KEY = "riseml.caller"
_LOGIN = "riseml.login"


@dataclass(frozen=True, slots=True)
class Login:
    """Who logs in with a request."""

    user: str  # as the provider says, where it may not come in
    session: str = ""  # id; empty: none was opened


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


def set_login(scope: Scope, login: Login) -> None:
    """Note who logs in with a request."""
    scope[_LOGIN] = login


def find_login(scope: Mapping[str, Any]) -> Login | None:
    """Return who logs in with a request; None: nobody, or somebody who is not known."""
    login = scope.get(_LOGIN)
    return login if isinstance(login, Login) else None
