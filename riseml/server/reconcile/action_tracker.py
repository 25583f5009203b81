"""The pending actions of the loop, the failed ones, and when those may be tried again."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta

from riseml.base.errors import EngineError, RisemlError
from riseml.base.faultpoints import reach
from riseml.base.names import HostName
from riseml.base.records import dataclass
from riseml.control.actions import Action, RemoveJob, StopJob
from riseml.executors.base import ImageMissing, SubnetTaken, WorkCancelled, WorkInterrupted
from riseml.executors.pool import Clock
from riseml.model import ActionFailure, Experiment
from riseml.server.clock import now
from riseml.server.log_line import write_line
from riseml.server.reconcile.decision_log import describe_done, describe_failure
from riseml.server.reconcile.wake import Wake
from riseml.spec.scalars.texts import make_valid

_WORKERS = 8  # actions at the same time on one host; an engine slows down with more
_FIRST_PAUSE = 0.5  # seconds; doubled with each failure in a row
_LONGEST_PAUSE = 30.0  # seconds between two attempts
_REPEAT_DOUBLINGS = 3  # a job that ignores its SIGKILL gets it every 4 seconds; so does work that has not ended
_DOUBLINGS = 10  # most doublings of the pause: enough for the longest one, however often an action fails

log = logging.getLogger(__name__)

Perform = Callable[[Action, Experiment | None], None]


@dataclass(frozen=True, slots=True)
class _Failed:
    """An action that failed the last time. Times are those of the tracker's clock, in seconds."""

    failure: ActionFailure
    since: float  # time of the first failure in a row; a failure after partial progress begins a new row
    retry_at: float  # the action is not tried again before this time


@dataclass(frozen=True, slots=True)
class _Sent:
    """An order that was given. A SIGTERM is sent once, and a SIGKILL again while the job still runs.

    A cancellation is given again while the work goes on: the work may wait for a store, or it began after the order.
    """

    count: int = 0
    again_at: float = math.inf  # not sent again before this time, on the tracker's clock in seconds


class ActionTracker:
    """Performs each action at most once at a time, and remembers its result.

    Args:
        perform: carries out one action; raises its error.
        wake: asks the loop for a pass; set whenever an action has ended.
        clock: measures pauses and durations; a user who sets the time of day changes neither.
    """

    def __init__(self, perform: Perform, wake: Wake, clock: Clock = time.monotonic) -> None:
        self._perform = perform
        self._wake = wake
        self._clock = clock
        self._lock = threading.Lock()
        self._pending: set[Action] = set()
        self._listed: frozenset[Action] = frozenset()  # the actions that counted as pending in the last pass
        self._sent: dict[Action, _Sent] = {}  # the signals that jobs have got, and the cancellations
        self._failed: dict[Action, _Failed] = {}
        self._workers: dict[str, ThreadPoolExecutor] = {}

    def list_pending(self, late: frozenset[HostName] = frozenset()) -> frozenset[Action]:
        """Return the actions whose result an answer of their host may not show yet.

        Args:
            late: hosts whose next answer belongs to an earlier pass; actions that were pending in that pass still count
            as pending.
        """
        with self._lock:
            self._listed = frozenset(self._pending) | {action for action in self._listed if action.host in late}
            return self._listed

    def list_failures(self, moment: datetime) -> Mapping[Action, ActionFailure]:
        """Return the actions that failed the last time. `moment` is now: `since` counts back from it."""
        clock = self._clock()
        with self._lock:
            return {
                action: replace(failed.failure, since=moment - timedelta(seconds=clock - failed.since))
                for action, failed in self._failed.items()
            }

    def start_actions(self, actions: tuple[Action, ...], experiments: Mapping[int, Experiment]) -> None:
        """Start every action that is not pending, not a repeated signal, and not within its pause.

        Args:
            actions: what a pass decided.
            experiments: the records that the actions belong to, by id.
        """
        clock = self._clock()
        for action in actions:
            with self._lock:
                failed = self._failed.get(action)
                if action in self._pending or (failed is not None and clock < failed.retry_at):
                    continue
                if action.is_order and not self._note_order(action, clock):
                    continue
                self._pending.add(action)
                workers = self._find_workers(action)
            workers.submit(self._perform_action, action, experiments.get(action.owner))

    def forget_experiments_except(self, open_ids: frozenset[int]) -> None:
        """Forget the failures and orders of experiments that are closed."""
        with self._lock:
            for action in [action for action in self._failed if action.owner not in open_ids]:
                self._failed.pop(action)
            self._sent = {order: sent for order, sent in self._sent.items() if order.owner in open_ids}

    def _note_order(self, order: Action, clock: float) -> bool:
        """Note that an order is given now. Return False when it was given and must not be given again yet."""
        sent = self._sent.get(order, _Sent(again_at=clock))
        if clock < sent.again_at:
            return False
        again = math.inf if order.is_given_once else clock + _find_pause(min(sent.count + 1, _REPEAT_DOUBLINGS))
        self._sent[order] = _Sent(sent.count + 1, again)
        return True

    def _find_workers(self, action: Action) -> ThreadPoolExecutor:
        """Return the threads for an action. Builds, fetches and copies take minutes, so they have separate threads."""
        name = f"{action.threads}{action.host}"
        if name not in self._workers:
            self._workers[name] = ThreadPoolExecutor(_WORKERS, thread_name_prefix=f"act-{name}")
        return self._workers[name]

    def _perform_action(self, action: Action, experiment: Experiment | None) -> None:
        begun = self._clock()
        error: RisemlError | None = None
        try:
            self._perform(action, experiment)
        except WorkCancelled:  # counted as a failure, it would keep the experiment away from this host
            self._note_end(action)
            self._wake.set()
            return
        except RisemlError as raised:
            error = raised
        except Exception as raised:
            log.exception("%s failed inside riseml", action)
            error = EngineError(f"riseml itself failed: {raised}", "see the server's log", permanent=True)
        seconds = self._clock() - begun
        if error is None:
            self._note_end(action)
            write_line(log, describe_done(action, experiment, seconds))
        elif self._note_failure(action, error):
            text = make_valid(error.message)
            write_line(log, describe_failure(action, experiment, text, seconds), logging.WARNING)
        if action.point_noted is not None:
            reach(action.point_noted)
        self._wake.set()

    def _note_end(self, action: Action) -> None:
        """Note that an action is over, and has not failed."""
        with self._lock:
            self._pending.discard(action)
            self._failed.pop(action, None)
            if isinstance(action, RemoveJob):
                self._sent = {
                    order: sent
                    for order, sent in self._sent.items()
                    if not isinstance(order, StopJob) or order.key != action.key
                }

    def _note_failure(self, action: Action, error: RisemlError) -> bool:
        """Remember a failure. Return True when it should be logged: for a new message, or when the number of failures
        has doubled."""
        clock = self._clock()
        permanent = isinstance(error, EngineError) and error.permanent
        # it may name a file whose name is not UTF-8, and records with it could not be saved
        message = make_valid(error.message if error.hint is None else f"{error.message} ({error.hint})")
        with self._lock:
            self._pending.discard(action)
            former = None if isinstance(error, WorkInterrupted) else self._failed.get(action)
            count = 1 if former is None else former.failure.count + 1
            since = clock if former is None else former.since
            failure = ActionFailure(
                message,
                permanent,
                now(),
                count,
                timedelta(seconds=clock - since),
                subnet_taken=isinstance(error, SubnetTaken),
                image_missing=isinstance(error, ImageMissing),
            )
            self._failed[action] = _Failed(failure, since, clock + _find_pause(count))
            if action.is_order:
                self._sent.pop(action, None)
        return former is None or former.failure.message != message or count & (count - 1) == 0


def _find_pause(count: int) -> float:
    """Return the pause in seconds before the next try, after this many tries."""
    return min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(count, _DOUBLINGS))
