"""The audit of a team's server: a line for each write before it takes effect, and for each refusal before its answer.

`AuditedApi` is behind the gate that knows the caller: what reaches it was let in. `AuditedGate` is before that gate:
it sees what the gate refuses, and what the API refuses to a reader; and logins, which the gate answers itself. The line
of a session is there before the browser or the command gets its secret.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from riseml.base.errors import StoreError
from riseml.base.records import dataclass
from riseml.server.gate.refusals import refuse_for
from riseml.server.gate.request_caller import find_caller, find_login
from riseml.store.audit_log import AuditEntry, AuditLog

_READS = ("GET", "HEAD", "OPTIONS")
_KILL = re.compile(r"/v1/experiments/[^/]+/kill")
_REFUSED = frozenset(
    {
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.FORBIDDEN,
        HTTPStatus.MISDIRECTED_REQUEST,
        HTTPStatus.TOO_MANY_REQUESTS,
    }
)
_LOGIN = re.compile(r"/(v1/login|login)/.*", re.DOTALL)  # paths that answer those who log in
_WRITTEN = "riseml.audited"  # in the scope of a request that `AuditedApi` has noted
_MINUTE = 60.0  # seconds
_MOST_REFUSALS = 20  # lines about one address in a minute; one line counts those beyond
_MOST_ADDRESSES = 1000  # whose refusals are counted at a time

log = logging.getLogger(__name__)

Now = Callable[[], datetime]


class AuditedApi:
    """The API, whose writes have a line in the audit log before they begin.

    Args:
        api: answers.
        audit: takes the lines.
        now: the time of day.
    """

    def __init__(self, api: ASGIApp, audit: AuditLog, now: Now) -> None:
        self._api = api
        self._audit = audit
        self._now = now

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] not in ("http", "websocket") or _is_read(scope):
            await self._api(scope, receive, send)
            return
        scope[_WRITTEN] = True
        append = self._audit.append_late if _is_kill(scope) else self._audit.append
        try:
            number = await asyncio.to_thread(append, _make_entry(scope, self._now(), "begun"))
        except StoreError as error:
            log.error("a request is refused: %s", error.message)
            await _refuse(error, scope, receive, send)
            return
        is_open = True

        async def send_noted(message: Message) -> None:
            nonlocal is_open
            status = _read_status(message) if is_open else None
            if status is not None:
                is_open = False
                entry = _make_entry(scope, self._now(), _name_result(status), number)
                await asyncio.to_thread(self._audit.append_late, entry)
            await send(message)

        await self._api(scope, receive, send_noted)


class AuditedGate:
    """The gate of a listener, whose refusals have a line in the audit log.

    Args:
        gate: knows the callers; behind it is an `AuditedApi`.
        audit: takes the lines.
        now: the time of day.
    """

    def __init__(self, gate: ASGIApp, audit: AuditLog, now: Now) -> None:
        self._gate = gate
        self._audit = audit
        self._now = now
        self._floods = _Floods()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        is_withheld = False

        async def send_noted(message: Message) -> None:
            nonlocal is_withheld
            status = _read_status(message)
            if status is not None and _WRITTEN not in scope:
                if _opens_session(scope, status):
                    error = await asyncio.to_thread(self._note_session, scope, status)
                    is_withheld = error is not None
                    if error is not None:
                        await _refuse(error, scope, receive, send)
                elif status in _REFUSED or _is_failed_login(scope, status):
                    await asyncio.to_thread(self._note, scope, status)
            if not is_withheld:
                await send(message)

        await self._gate(scope, receive, send_noted)

    def _note_session(self, scope: Scope, status: int) -> StoreError | None:
        """Note a session that has begun. Return why that is not possible: nobody may get its secret."""
        try:
            self._audit.append(_make_entry(scope, self._now(), _name_result(status)))
        except StoreError as error:
            log.error("a login is refused: %s", error.message)
            return error
        return None

    def _note(self, scope: Scope, status: int) -> None:
        """Note a refusal, unless the address has had many in this minute. The request has no effect in either case."""
        at = self._now()
        entry = _make_entry(scope, at, _name_result(status))
        left_out = self._floods.count(entry.address, at.timestamp())
        if left_out is None:
            return
        if left_out:
            entry = _make_entry(scope, at, f"{entry.result} and {left_out} more before")
        self._audit.append_late(entry)


def add_audit(api: ASGIApp, audit: AuditLog | None, now: Now, make_gate: Callable[[ASGIApp], ASGIApp]) -> ASGIApp:
    """Return the gate before `api`, whose writes and refusals are noted.

    Args:
        api: answers.
        audit: takes the lines; None: the server has one user, and notes nothing.
        now: the time of day.
        make_gate: makes the gate before an application.
    """
    if audit is None:
        return make_gate(api)
    return AuditedGate(make_gate(AuditedApi(api, audit, now)), audit, now)


async def _refuse(error: StoreError, scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse a request that cannot be noted."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
    else:
        await refuse_for(error)(scope, receive, send)


@dataclass(slots=True)
class _Flood:
    """The refusals of one address since `since`, in seconds since the epoch."""

    since: float
    count: int = 0
    left_out: int = 0  # of this minute and those before, which no line has counted


class _Floods:
    """How many refusals each address has had: who only wants to fill the log gets few lines a minute."""

    def __init__(self) -> None:
        self._floods: OrderedDict[str, _Flood] = OrderedDict()
        self._lock = threading.Lock()

    def count(self, address: str, now: float) -> int | None:
        """Count a refusal. Return how many were left out before it; None: it is left out itself."""
        with self._lock:
            flood = self._floods.pop(address, None) or _Flood(now)
            self._floods[address] = flood
            if len(self._floods) > _MOST_ADDRESSES:
                self._floods.popitem(last=False)
            if now - flood.since >= _MINUTE:
                flood.since = now
                flood.count = 0
            flood.count += 1
            if flood.count > _MOST_REFUSALS:
                flood.left_out += 1
                return None
            left_out, flood.left_out = flood.left_out, 0
            return left_out


def _is_read(scope: Scope) -> bool:
    return scope["type"] == "http" and scope["method"] in _READS


def _is_kill(scope: Scope) -> bool:
    return scope["type"] == "http" and _KILL.fullmatch(scope["path"]) is not None


def _opens_session(scope: Scope, status: int) -> bool:
    login = find_login(scope)
    return status < HTTPStatus.BAD_REQUEST and login is not None and bool(login.session)


def _is_failed_login(scope: Scope, status: int) -> bool:
    return status >= HTTPStatus.BAD_REQUEST and scope["type"] == "http" and _LOGIN.fullmatch(scope["path"]) is not None


def _make_entry(scope: Scope, at: datetime, result: str, of: int | None = None) -> AuditEntry:
    caller = find_caller(scope)
    login = find_login(scope)
    user, key = ("", "") if login is None else (login.user, login.session)
    client = scope.get("client")
    return AuditEntry(
        at=at,
        user=user if caller is None else caller.user,
        key=key if caller is None else caller.key,
        address=client[0] if client else "",
        request=f"{scope['method'] if scope['type'] == 'http' else 'CONNECT'} {scope['path']}",
        result=result,
        of=of,
    )


def _read_status(message: Message) -> int | None:
    """Return the status of an answer that begins; that of a handshake, too. None: the message is something else."""
    match message["type"]:
        case "http.response.start" | "websocket.http.response.start":
            return int(message["status"])
        case "websocket.accept":
            return HTTPStatus.SWITCHING_PROTOCOLS
        case "websocket.close":
            return HTTPStatus.FORBIDDEN
        case _:
            return None


def _name_result(status: int) -> str:
    if status in _REFUSED:
        return f"refused {int(status)}"
    return f"{'done' if status < HTTPStatus.BAD_REQUEST else 'failed'} {int(status)}"
