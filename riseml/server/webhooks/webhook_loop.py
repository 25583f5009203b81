"""The thread that tells webhooks of ends, each at least once and in order, and tries again for a day.

What a webhook was told is a position in the store, which is saved after the address has said yes. A server that dies in
between sends the same end again, with the same `Riseml-Delivery`. Nothing here can fail or delay an experiment.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from riseml.errors import RisemlError
from riseml.names import experiment_name
from riseml.server.clock import now
from riseml.server.log_line import LogLine, write_line
from riseml.server.webhooks.delivery import NotDelivered, post
from riseml.server.webhooks.messages import make_body, make_headers
from riseml.server.webhooks.webhook_file import Webhook, find_file_time, read_webhooks
from riseml.store.ends import EndStore, ExperimentEnd

_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 900.0  # seconds between two tries; each is twice the one before
_GIVES_UP = 86400.0  # seconds after the end
_POLL = 30.0  # seconds: how soon a change of the file counts when nothing ends

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Waiting:
    """A webhook that did not take an end."""

    failures: int = 0
    due: float = 0.0  # monotonic seconds


class WebhookLoop(threading.Thread):
    """Tells the webhooks of a home; a server has one.

    Args:
        home: has the file of webhooks.
        server: id of the server; part of the name of each delivery.
        ends: what has ended.
        send: one request; tests shorten its deadline.
    """

    def __init__(self, home: Path, server: str, ends: EndStore, send: Callable[..., int] = post) -> None:
        super().__init__(name="webhooks", daemon=True)
        self._home = home
        self._server = server
        self._ends = ends
        self._send = send
        self._news = threading.Event()
        self._stopping = threading.Event()
        self._waiting: dict[str, _Waiting] = {}  # by the name of the webhook
        self._known: frozenset[str] = frozenset()  # names of the webhooks of the last pass
        self._problem = ""  # why the last pass sent nothing

    def note_end(self) -> None:
        """Look for ends at once."""
        self._news.set()

    def stop(self) -> None:
        """End after the present request; it is not waited for."""
        self._stopping.set()
        self._news.set()

    def run(self) -> None:
        while not self._stopping.is_set():
            self._news.clear()
            pause = self._try_pass()
            self._news.wait(pause)

    def _try_pass(self) -> float:
        """Tell all webhooks what can be told, and return the seconds until the next pass at the latest."""
        problem = ""
        try:
            hooks = read_webhooks(self._home)
            self._forget_others(frozenset(hook.name for hook in hooks))
            dues = [self._tell(hook, self._find_beginning()) for hook in hooks]
        except RisemlError as error:
            problem, dues = error.message, []
            if problem != self._problem:
                log.warning("webhooks are told nothing: %s (%s)", error.message, error.hint)
        except Exception:
            log.exception("webhooks are told nothing now")
            dues = []
        self._problem = problem
        return min([_POLL, *(max(0.0, due - time.monotonic()) for due in dues if due is not None)])

    def _find_beginning(self) -> datetime:
        """Return from when on a new webhook is told: from the change of the file, at most an hour ago."""
        return max(find_file_time(self._home), now() - timedelta(hours=1))

    def _forget_others(self, names: frozenset[str]) -> None:
        if names != self._known:
            self._ends.forget_others(names)
            self._waiting = {name: one for name, one in self._waiting.items() if name in names}
            self._known = names

    def _tell(self, hook: Webhook, since: datetime) -> float | None:
        """Tell a webhook everything that it was not told; return when to try again, None: it knows everything."""
        position = self._ends.load_position(hook.name, since)
        while not self._stopping.is_set() and (end := self._ends.find_next(position)) is not None:
            waiting = self._waiting.get(hook.name, _Waiting())
            if waiting.due > time.monotonic():
                return waiting.due
            if hook.wants(end.project, end.state) and not self._deliver(hook, end, waiting):
                return waiting.due
            self._waiting.pop(hook.name, None)
            position = end.id
            self._ends.save_position(hook.name, position)
        return None

    def _deliver(self, hook: Webhook, end: ExperimentEnd, waiting: _Waiting) -> bool:
        """Send an end; return False when it is to be tried again."""
        delivery = f"{self._server[:16]}-{hook.name}-{end.id}"
        body = make_body(hook, end, delivery)
        name = experiment_name(end.number, end.sub)
        try:
            status = self._send(hook.url, body, make_headers(hook, body, delivery, int(now().timestamp())))
        except NotDelivered as error:
            waiting.failures += 1
            if (now() - end.ended_at).total_seconds() > _GIVES_UP:
                write_line(
                    log, LogLine(f"{name}: webhook {hook.name} is not told any more: {error}", name), logging.WARNING
                )
                return True
            if waiting.failures == 1:
                text = f"{name}: webhook {hook.name} was not told, and is tried again: {error}"
                write_line(log, LogLine(text, name), logging.WARNING)
            waiting.due = time.monotonic() + min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(waiting.failures - 1, 20))
            self._waiting[hook.name] = waiting
            return False
        write_line(log, LogLine(f"{name}: webhook {hook.name} was told: {end.state.value} ({status})", name))
        return True
