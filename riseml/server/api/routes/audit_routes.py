"""The routes of the audit log of a team's server, for administrators."""

from __future__ import annotations

from datetime import datetime
from itertools import islice, takewhile
from typing import Annotated

from fastapi import APIRouter, Query

from riseml import wire
from riseml.base.errors import NotFound
from riseml.server.api.submissions.submit import check_text
from riseml.server.api.views.record_views import show_time
from riseml.server.services import Services
from riseml.store.audit_log import AuditHead, AuditLine, AuditLog

_USUAL_LINES = 100
_MOST_LINES = 10_000
_MOST_NUMBER = 2**53  # that every reader of JSON takes


def add_audit_routes(router: APIRouter, services: Services) -> None:
    """Add GET /audit and GET /audit/check."""

    @router.get("/audit")
    def list_audit_lines(
        user: Annotated[str | None, Query(max_length=64, description="who called; empty: nobody known")] = None,
        since: Annotated[datetime | None, Query(description="no older lines")] = None,
        before: Annotated[int | None, Query(ge=1, le=_MOST_NUMBER, description="only lines below this number")] = None,
        limit: Annotated[int, Query(ge=1, le=_MOST_LINES)] = _USUAL_LINES,
    ) -> wire.AuditList:
        check_text([user])
        lines = _find_audit_log(services).read_newest()
        recent = lines if since is None else takewhile(lambda line: line.entry.at >= since.astimezone(), lines)
        chosen = (
            line for line in recent if user in (None, line.entry.user) and (before is None or line.number < before)
        )
        return {"lines": [_show_line(line) for line in islice(chosen, limit)]}

    @router.get("/audit/check")
    def check_audit_log(
        number: Annotated[int | None, Query(ge=1, le=_MOST_NUMBER, description="a line that was the last one")] = None,
        hash: Annotated[str, Query(max_length=64, description="the hash of that line, as it was kept elsewhere")] = "",
    ) -> wire.AuditCheckView:
        check_text([hash])
        check = _find_audit_log(services).verify(None if number is None else AuditHead(number, hash))
        return {"number": check.head.number, "hash": check.head.hash, "problem": check.problem}


def _find_audit_log(services: Services) -> AuditLog:
    """Return the audit log.

    Raises:
        NotFound: the server has one user.
    """
    if services.audit is None:
        raise NotFound(
            "this server has one user, and keeps no audit log", "`riseml server init` makes a server for a team"
        )
    return services.audit


def _show_line(line: AuditLine) -> wire.AuditLineView:
    entry = line.entry
    return {
        "number": line.number,
        "at": show_time(entry.at) or "",
        "user": entry.user,
        "key": entry.key,
        "address": entry.address,
        "request": entry.request,
        "result": entry.result,
        "of": entry.of,
    }
