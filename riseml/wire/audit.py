"""The audit log of a team's server."""

from __future__ import annotations

from typing_extensions import TypedDict


class AuditLineView(TypedDict):
    """One line: what a caller asked to change, or was refused."""

    number: int  # counts from 1
    at: str
    user: str  # empty: the server does not know who called
    key: str  # id of the key or session; empty: the socket of the server's own machine
    address: str  # of the client; empty: the same socket
    request: str  # `POST /v1/experiments/4/kill`
    result: str  # `begun` before a write; `done 200`, `refused 403` or `failed 500` when it was answered
    of: int | None  # number of the line `begun` that this one completes


class AuditList(TypedDict):
    """Lines of the audit log, the newest first."""

    lines: list[AuditLineView]


class AuditCheckView(TypedDict):
    """Whether the audit log is what the server wrote."""

    number: int  # of the last line that is right; 0: there is none
    hash: str  # of that line
    problem: str  # where the chain breaks, as a sentence without its point; empty: nowhere
