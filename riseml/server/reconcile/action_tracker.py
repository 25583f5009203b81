"""The books of the loop: which actions are under way, which went wrong, and when they may be tried again."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from riseml.control.actions import Action, EnsureImage, RemoveJob, ShareImage, Signal, StartJob, StopJob, owner_of
from riseml.errors import EngineError, RisemlError
from riseml.executors.base import SubnetTaken
from riseml.executors.pool import Clock
from riseml.faultpoints import Point, reach
from riseml.model import ActionFailure, Experiment
from riseml.names import HostName
from riseml.server.clock import now
from riseml.server.reconcile.wake import Wake

_HANDS = 8  # actions at the same time on one host; an engine slows down with more
_LONGEST_PAUSE = 30.0  # seconds between two attempts
_DOUBLINGS = 10  # of the pause; enough for the longest one, however often an action fails

log = logging.getLogger(__name__)

Perform = Callable[[Action, Experiment | None], None]


@dataclass(frozen=True, slots=True)
class _Note:
    """A problem with the times of the clock at which it came up, and before which the action is not tried again."""

    problem: ActionFailure
    since: float
    again: float


class ActionTracker:
    """Hands actions out, each at most once at a time, and notes how they went.

    Args:
        perform: carries an action out.
        wake: set whenever one has ended.
        clock: measures pauses and how long a problem has lasted; whoever sets the time of day changes neither.
    """

    def __init__(self, perform: Perform, wake: Wake, clock: Clock = time.monotonic) -> None:
        self._perform = perform
        self._wake = wake
        self._clock = clock
        self._lock = threading.Lock()
        self._busy: set[Action] = set()
        self._asked: set[StopJob] = set()
        self._notes: dict[Action, _Note] = {}
        self._hands: dict[HostName, ThreadPoolExecutor] = {}

    def busy(self) -> frozenset[Action]:
        """The actions under way."""
        with self._lock:
            return frozenset(self._busy)

    def problems(self, moment: datetime) -> Mapping[Action, ActionFailure]:
        """The actions that went wrong the last time. `moment` is now: since when counts back from it."""
        clock = self._clock()
        with self._lock:
            return {
                action: replace(note.problem, since=moment - timedelta(seconds=clock - note.since))
                for action, note in self._notes.items()
            }

    def begin(self, actions: tuple[Action, ...], experiments: Mapping[int, Experiment]) -> None:
        """Begin every action that is neither under way, nor done for good, nor waiting for its next attempt."""
        clock = self._clock()
        for action in actions:
            with self._lock:
                note = self._notes.get(action)
                if action in self._busy or action in self._asked or (note is not None and clock < note.again):
                    continue
                self._busy.add(action)
                if isinstance(action, StopJob) and action.signal is Signal.TERM:
                    self._asked.add(action)
                hands = self._hand(action)
            hands.submit(self._run, action, experiments.get(owner_of(action)))

    def forget(self, experiments: frozenset[int]) -> None:
        """Drop the notes about experiments that are no more."""
        with self._lock:
            for action in [action for action in self._notes if owner_of(action) not in experiments]:
                self._notes.pop(action)
            self._asked = {stop for stop in self._asked if owner_of(stop) in experiments}

    def _hand(self, action: Action) -> ThreadPoolExecutor:
        """Builds take minutes, so that they have hands of their own."""
        name = HostName(f"build-{action.host}") if isinstance(action, (EnsureImage, ShareImage)) else action.host
        if name not in self._hands:
            self._hands[name] = ThreadPoolExecutor(_HANDS, thread_name_prefix=f"act-{name}")
        return self._hands[name]

    def _run(self, action: Action, experiment: Experiment | None) -> None:
        trouble: RisemlError | None = None
        try:
            self._perform(action, experiment)
        except RisemlError as error:
            trouble = error
        except Exception as error:
            log.exception("%s failed inside riseml", action)
            trouble = EngineError(f"riseml itself failed: {error}", "see the server's log", permanent=True)
        with self._lock:
            self._busy.discard(action)
            if trouble is None:
                self._notes.pop(action, None)
                if isinstance(action, RemoveJob):
                    self._asked = {stop for stop in self._asked if stop.key != action.key}
            else:
                self._note(action, trouble)
        if isinstance(action, StartJob):
            reach(Point.GANG_STARTING)
        self._wake.set()

    def _note(self, action: Action, trouble: RisemlError) -> None:
        log.warning("%s: %s", action, trouble.message)
        clock = self._clock()
        permanent = isinstance(trouble, EngineError) and trouble.permanent
        message = trouble.message if trouble.hint is None else f"{trouble.message} ({trouble.hint})"
        known = self._notes.get(action)
        count = 1 if known is None else known.problem.count + 1
        problem = ActionFailure(message, permanent, now(), count, isinstance(trouble, SubnetTaken))
        pause = min(_LONGEST_PAUSE, 0.5 * 2 ** min(count, _DOUBLINGS))
        self._notes[action] = _Note(problem, clock if known is None else known.since, clock + pause)
        if isinstance(action, StopJob):
            self._asked.discard(action)
