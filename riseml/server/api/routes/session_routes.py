"""The routes of sessions at a team's server: users list and end their own, and admins those of everyone."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from riseml import wire
from riseml.base.errors import NotFound, Refused
from riseml.base.roles import Role, Scope
from riseml.model import Caller
from riseml.server.api.callers import CallerOf
from riseml.server.api.views.record_views import show_time
from riseml.server.clock import now
from riseml.store.sessions import Session, SessionStore


def add_session_routes(router: APIRouter, sessions: SessionStore) -> None:
    """Add /sessions."""

    @router.get("/sessions")
    def list_sessions(
        caller: CallerOf,
        user: Annotated[str | None, Query(max_length=64, description="whose; for admins; `*`: everyone's")] = None,
    ) -> wire.Sessions:
        chosen = user or caller.user
        if chosen != caller.user and caller.role is not Role.ADMIN:
            raise Refused("the sessions of others are for admins", "`riseml session list` shows yours")
        return _show_sessions(caller, sessions, None if chosen == "*" else chosen)

    @router.post("/sessions/{name}/end")
    def end_session(caller: CallerOf, name: Annotated[str, Path(max_length=64)]) -> wire.Sessions:
        if caller.scope is Scope.READ and name != caller.key:
            raise Refused("a key that only reads ends no other session", "use a key with the scope run or admin")
        is_admin = caller.role is Role.ADMIN and caller.scope is Scope.ADMIN
        if not sessions.end(name, None if is_admin else caller.user):
            raise NotFound(f"there is no session {name}", "`riseml session list` shows yours")
        return _show_sessions(caller, sessions, caller.user)


def _show_sessions(caller: Caller, sessions: SessionStore, user: str | None) -> wire.Sessions:
    return {"user": caller.user, "sessions": [_show(session) for session in sessions.list_open(now(), user)]}


def _show(session: Session) -> wire.SessionView:
    return {
        "id": session.id,
        "user": session.user,
        "kind": "page" if session.kind.value == "page" else "device",
        "created_at": show_time(session.created_at) or "",
        "used_at": show_time(session.used_at) or "",
        "expires_at": show_time(session.expires_at) or "",
        "user_agent": session.user_agent,
        "address": session.address,
        "key": session.key or None,
    }
