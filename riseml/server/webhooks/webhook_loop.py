"""The thread that sends notices to webhooks: each at least once, in order, repeated for a day on failure.

The progress of a webhook is a position in the store, which is saved after the address has accepted the notice. After a
kill in between, the next server sends the same notice again, with the same `Riseml-Delivery`. Nothing here can fail or
delay an experiment.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import http.client
import json
import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from riseml import __version__
from riseml.base.errors import RisemlError
from riseml.base.records import dataclass
from riseml.server.clock import now
from riseml.server.log_line import LogLine, write_line
from riseml.server.webhooks.notices import (
    Notice,
    make_end_notice,
    make_milestone_notice,
    make_remark_notice,
    make_set_notice,
)
from riseml.server.webhooks.remark_watch import RemarkWatch
from riseml.server.webhooks.webhook_file import Webhook, WebhookFormat, find_file_time, read_webhooks
from riseml.store.ends import EndStore, ExperimentEnd, SetProgress
from riseml.store.experiments import ExperimentStore
from riseml.store.milestones import Milestone, MilestoneStore
from riseml.store.noted_remarks import NotedRemark
from riseml.store.searches import SearchStore

DEADLINE = 15.0  # seconds that a request takes at most

_FIRST_PAUSE = 2.0  # seconds between two tries; each is twice the one before
_LONGEST_PAUSE = 900.0  # seconds
_GIVES_UP = 86400.0  # seconds after the end
_FILE_POLL = 30.0  # seconds until a change of the file takes effect when no experiment ends
_SEARCH_PATIENCE = 300.0  # seconds within which a search decides whether it makes a further trial
_LATE = "/late"  # ends the name under which the store keeps the ends of sets whose searches decide later
_REACHED = "/reached"  # ends the name of the reader of milestones; no webhook has such a name
_REMARKED = "/remarked"  # ends the name of the reader of remarks

log = logging.getLogger(__name__)

_ToSend = tuple[Callable[[], None], Notice | None]
"""A function that records that a webhook has got a notice, and the notice; None: the webhook does not get it."""


@dataclass(frozen=True, slots=True)
class WebhookLoopParts:
    """The services of the loop."""

    server: str  # id of the server; part of the name of each delivery
    ends: EndStore
    milestones: MilestoneStore
    remarks: RemarkWatch
    experiments: ExperimentStore
    searches: SearchStore
    news: threading.Event  # set when there may be new notices
    note: Callable[[int, str], None]  # writes a line into the log of an experiment
    is_team: bool = False  # users of the server do not trust each other


class NotDelivered(Exception):
    """The address did not accept the message; the text says why, without the address."""


def make_body(webhook: Webhook, notice: Notice, delivery: str) -> bytes:
    """Return the body. `delivery` is the same whenever this notice is sent to this webhook."""
    sentence = f"riseml: {notice.sentence}"
    match webhook.format:
        case WebhookFormat.JSON:
            body: object = {**notice.document, "delivery": delivery}
        case WebhookFormat.SLACK:
            body = {"text": _escape_markup(sentence)}
        case WebhookFormat.DISCORD:
            body = {"content": sentence, "allowed_mentions": {"parse": []}}
    return json.dumps(body).encode()


def make_headers(webhook: Webhook, body: bytes, delivery: str, moment: int) -> dict[str, str]:
    """Return the headers of a request that is sent at `moment`, in seconds since 1970."""
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"riseml/{__version__}",
        "Riseml-Delivery": delivery,
        "Riseml-Time": str(moment),
    }
    if webhook.secret:
        headers["Riseml-Signature"] = "sha256=" + sign(webhook.secret, moment, body)
    return headers


def sign(secret: str, moment: int, body: bytes) -> str:
    """Return HMAC-SHA256 in hex over the moment, a dot and the body, with the secret as UTF-8."""
    return hmac.new(secret.encode(), str(moment).encode() + b"." + body, hashlib.sha256).hexdigest()


def post(url: str, body: bytes, headers: Mapping[str, str], deadline: float = DEADLINE) -> int:
    """Send a body in one request, without redirects and proxies, and return the status of the answer: 200 to 299.

    Raises:
        NotDelivered: the answer has another status, or none came in time.
    """
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection = _make_connection(parts.scheme, parts.hostname or "", parts.port, deadline)
    end = threading.Timer(deadline, _cut_request, [connection])  # a socket's own timeout restarts with each byte
    end.daemon = True
    try:
        connection.connect()  # it may take longer than the deadline, and the timer finds no socket until then
        end.start()
        connection.request("POST", target, body, dict(headers))
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NotDelivered(_describe_error(error)) from None
    finally:
        end.cancel()
        connection.close()
    if not 200 <= status <= 299:
        why = "a redirect, which is not followed" if 300 <= status <= 399 else f"status {status}"
        raise NotDelivered(f"it answered with {why}")
    return status


class WebhookLoop(threading.Thread):
    """Sends notices to the webhooks of a home; a server has one.

    Args:
        home: has the file of webhooks.
        desk: the sources of notices, and the logs of deliveries.
        send: one request; tests shorten its deadline.
    """

    def __init__(self, home: Path, desk: WebhookLoopParts, send: Callable[..., int] = post) -> None:
        super().__init__(name="webhooks", daemon=True)
        self._home = home
        self._desk = desk
        self._send = send
        self._stopping = threading.Event()
        self._waiting: dict[str, _Waiting] = {}  # by the name of the webhook
        self._taken: dict[str, str] = {}  # the place of the last notice by webhook: the store may not have noted it
        # the webhooks of the last pass by name; None: it is the first
        self._last_hooks: Mapping[str, Webhook] | None = None
        self._problem = ""  # why the last pass sent nothing

    def note_end(self) -> None:
        """Look for ends at once."""
        self._desk.news.set()

    def has_waiting(self) -> bool:
        """Return True while a webhook is to get a notice again. It gets each one for a day, if its file can be read."""
        return bool(self._waiting) and not self._problem

    def stop(self) -> None:
        """Stop after the present request, and do not wait for it."""
        self._stopping.set()
        self._desk.news.set()

    def run(self) -> None:
        while not self._stopping.is_set():
            self._desk.news.clear()
            pause = self._try_pass()
            self._desk.news.wait(pause)

    def _try_pass(self) -> float:
        """Send all notices that can be sent now. Return the seconds until the next pass at the latest."""
        problem = ""
        try:
            hooks = read_webhooks(self._home)
            self._forget_others({hook.name: hook for hook in hooks})
            self._desk.remarks.look(hooks)
            dues = [self._send_notices(hook, self._find_beginning()) for hook in hooks]
        except RisemlError as error:
            problem = error.message
            dues = []
            if problem != self._problem:
                log.warning("no notice can be sent: %s (%s)", error.message, error.hint)
        except Exception:
            log.exception("no notice can be sent now")
            dues = []
        self._problem = problem
        return min([_FILE_POLL, *(max(0.0, due - time.monotonic()) for due in dues if due is not None)])

    def _find_beginning(self) -> datetime:
        """Return the time from which on a new webhook gets ends: the change of the file, at most an hour ago."""
        return max(find_file_time(self._home), now() - timedelta(hours=1))

    def _forget_others(self, hooks: Mapping[str, Webhook]) -> None:
        """Forget where webhooks are that the file has no longer, and for what a changed one waits: its new address is
        asked at once."""
        last_hooks = self._last_hooks
        if last_hooks is None or last_hooks.keys() != hooks.keys():
            kinds = ("", _LATE, _REACHED, _REMARKED)
            self._desk.ends.forget_others(f"{name}{kind}" for name in hooks for kind in kinds)
        self._waiting = {
            name: waiting
            for name, waiting in self._waiting.items()
            if last_hooks and hooks.get(name) == last_hooks[name]
        }
        self._last_hooks = hooks

    def _send_notices(self, hook: Webhook, since: datetime) -> float | None:
        """Send a webhook all notices that it has not got. Return when to try again; None when it has all."""
        for read in (self._read_late, self._read_ends, self._read_milestones, self._read_remarks):
            for note_sent, notice in read(hook, since):
                waiting = self._waiting.get(hook.name, _Waiting())
                if waiting.due > time.monotonic() or self._stopping.is_set():
                    return waiting.due
                if notice is not None and self._taken.get(hook.name) != notice.place:
                    if not self._deliver(hook, notice, waiting):
                        return waiting.due
                    self._taken[hook.name] = notice.place
                self._waiting.pop(hook.name, None)
                note_sent()
        return None

    def _read_ends(self, hook: Webhook, since: datetime) -> Iterator[_ToSend]:
        """Yield the ends that the webhook has not got."""
        position = self._desk.ends.load_position(hook.name, since)
        ends = self._desk.ends
        while (end := ends.find_next(position)) is not None:
            position = end.id
            note_sent = partial(ends.save_position, hook.name, position)
            try:
                yield note_sent, self._make_end_notice(hook, end)
            except _NotYet:
                if (now() - end.noticed_at).total_seconds() < _SEARCH_PATIENCE:
                    self._waiting[hook.name] = _Waiting(due=time.monotonic() + _FIRST_PAUSE)
                else:  # the ends of other experiments wait no longer
                    ends.save_late(f"{hook.name}{_LATE}", (*ends.load_late(f"{hook.name}{_LATE}"), position))
                yield note_sent, None

    def _read_late(self, hook: Webhook, since: datetime) -> Iterator[_ToSend]:
        """Yield the ends of sets whose searches have decided since: when their last experiments are closed."""
        reader = f"{hook.name}{_LATE}"
        ends = self._desk.ends
        for position in (late := ends.load_late(reader)):
            end = ends.find_next(position - 1)
            if end is None or end.id != position:
                continue
            with contextlib.suppress(_NotYet):
                notice = self._make_end_notice(hook, end)
                late = tuple(pending for pending in late if pending != position)
                yield partial(ends.save_late, reader, late), notice

    def _make_end_notice(self, hook: Webhook, end: ExperimentEnd) -> Notice | None:
        """Return the notice of an end; None: the webhook does not get this end.

        Raises:
            _NotYet: a search has not decided yet whether it is the end of its set.
        """
        if end.set_id is None:
            return make_end_notice(end) if hook.wants(self._find_project(end), end.state, end.notify) else None
        progress = self._desk.ends.find_set_progress(end)
        if progress is SetProgress.WAITS:
            raise _NotYet
        if progress is not SetProgress.ENDED:
            return None
        members = [detail.experiment for detail in self._desk.experiments.find_by_number(end.user, end.number)]
        search = self._desk.searches.load_searches((end.set_id,)).get(end.set_id)
        notice = make_set_notice(end, members, search)
        is_wanted = notice.state is not None and hook.wants(self._find_project(end), notice.state, end.notify)
        return notice if is_wanted else None

    def _find_project(self, record: ExperimentEnd | Milestone | NotedRemark) -> str | None:
        """Return the project by which webhooks choose. On a team's server anybody may write any name into a riseml.yml,
        so the team project counts.
        """
        return record.team_project if self._desk.is_team else record.project

    def _read_milestones(self, hook: Webhook, since: datetime) -> Iterator[_ToSend]:
        """Yield the milestones that the webhook has not got."""
        reader = f"{hook.name}{_REACHED}"
        position = self._desk.ends.load_position(reader, since, self._desk.milestones.find_last_before)
        while (milestone := self._desk.milestones.find_next(position)) is not None:
            position = milestone.id
            is_wanted = hook.wants_reached(self._find_project(milestone), milestone.notify)
            notice = make_milestone_notice(milestone) if is_wanted else None
            yield partial(self._desk.ends.save_position, reader, position), notice

    def _read_remarks(self, hook: Webhook, since: datetime) -> Iterator[_ToSend]:
        """Yield the remarks that the webhook has not got."""
        reader = f"{hook.name}{_REMARKED}"
        store = self._desk.remarks.store
        position = self._desk.ends.load_position(reader, since, store.find_last_before)
        while (remark := store.find_next(position)) is not None:
            position = remark.id
            is_wanted = hook.wants_remarks(self._find_project(remark), remark.notify)
            notice = make_remark_notice(remark) if is_wanted else None
            yield partial(self._desk.ends.save_position, reader, position), notice

    def _deliver(self, hook: Webhook, notice: Notice, waiting: _Waiting) -> bool:
        """Send a notice. Return False when it must be sent again later."""
        delivery = f"{self._desk.server[:16]}-{hook.name}-{notice.place}"
        body = make_body(hook, notice, delivery)
        try:
            status = self._send(hook.url, body, make_headers(hook, body, delivery, int(now().timestamp())))
        except NotDelivered as error:
            waiting.failures += 1
            if (now() - notice.at).total_seconds() > _GIVES_UP:
                self._note(notice, f"webhook {hook.name} does not get this notice: {error}", logging.WARNING)
                return True
            if waiting.failures == 1:
                self._note(
                    notice,
                    f"webhook {hook.name} did not take the notice, tried again later: {error}",
                    logging.WARNING,
                )
            waiting.due = time.monotonic() + min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(waiting.failures - 1, 20))
            self._waiting[hook.name] = waiting
            return False
        self._note(notice, f"webhook {hook.name} got the notice: {notice.short} ({status})", logging.INFO)
        return True

    def _note(self, notice: Notice, text: str, level: int) -> None:
        """Write the result of a delivery into the server's log and the experiment's log."""
        write_line(log, LogLine(f"{notice.name}: {text}", notice.name), level)
        self._desk.note(notice.experiment, text)


@dataclass(slots=True)
class _Waiting:
    """A webhook that did not accept a notice."""

    failures: int = 0
    due: float = 0.0  # monotonic seconds


class _NotYet(Exception):
    """A search has not decided yet whether its set has ended."""


def _escape_markup(text: str) -> str:
    """Return a text in which Slack finds no link, no mention and no channel."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _make_connection(scheme: str, host: str, port: int | None, deadline: float) -> http.client.HTTPConnection:
    """Return a connection that is not open yet. It names the port: without one, http.client takes the end of an IPv6
    address for it.
    """
    if scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, port or http.client.HTTPS_PORT, timeout=deadline, context=context)
    return http.client.HTTPConnection(host, port or http.client.HTTP_PORT, timeout=deadline)


def _cut_request(connection: http.client.HTTPConnection) -> None:
    """End a request whose time is over; the thread that waits for it gets an error."""
    open_socket: socket.socket | None = connection.sock
    if open_socket is not None:
        with contextlib.suppress(OSError):
            open_socket.shutdown(socket.SHUT_RDWR)


def _describe_error(error: Exception) -> str:
    """Return why there is no answer: the kind of an error, since its text may hold the address."""
    if isinstance(error, TimeoutError):
        return "no answer came in time"
    if isinstance(error, ssl.SSLError):
        return f"no secure connection: {error.reason or 'the certificate cannot be trusted'}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"no answer that can be read ({type(error).__name__})"
