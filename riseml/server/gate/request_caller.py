"""The caller of a request: a gate sets it, and the API reads it. And who logs in with a request that has no caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from starlette.types import Scope

from riseml.base.errors import Unauthenticated
from riseml.base.records import dataclass
from riseml.model import Caller

_KEY = "riseml.caller"
_ASK_AGAIN = "riseml.ask-again"
_LOGIN = "riseml.login"


@dataclass(frozen=True, slots=True)
class Login:
    """Who logs in with a request."""

    user: str  # as the provider says, where it may not come in
    session: str = ""  # id; empty: none was opened


def set_caller(scope: Scope, caller: Caller, ask_again: Callable[[], Caller] | None = None) -> None:
    """Note who has sent a request.

    Args:
        scope: of the request.
        caller: who has sent it.
        ask_again: returns the caller with the rights of the moment, for an answer that goes on for hours; it raises a
            RisemlError when they may not come in any more, or nobody knows. None: the rights stay as they are.
    """
    scope[_KEY] = caller
    scope[_ASK_AGAIN] = ask_again


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


def ask_for_caller(scope: Mapping[str, Any]) -> Caller:
    """Return who has sent a request, with their rights of the moment.

    Raises:
        RisemlError: they may not come in any more, or nobody knows.
    """
    ask_again: Callable[[], Caller] | None = scope.get(_ASK_AGAIN)
    return get_caller(scope) if ask_again is None else ask_again()


def set_login(scope: Scope, login: Login) -> None:
    """Note who logs in with a request."""
    scope[_LOGIN] = login


def find_login(scope: Mapping[str, Any]) -> Login | None:
    """Return who logs in with a request; None: nobody, or somebody who is not known."""
    login = scope.get(_LOGIN)
    return login if isinstance(login, Login) else None
