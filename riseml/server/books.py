"""The books of the loop: which actions are under way, which went wrong, and when they may be tried again."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta

from riseml.control.actions import Action, EnsureImage, Remove, ShareImage, Signal, Start, Stop, owner_of
from riseml.errors import EngineError, RisemlError
from riseml.executors.base import SubnetTaken
from riseml.faultpoints import Point, reach
from riseml.model import Experiment, Problem
from riseml.names import HostName
from riseml.server.clock import now
from riseml.server.wake import Wake

_HANDS = 8  # actions at the same time on one host; an engine slows down with more
_LONGEST_PAUSE = 30.0  # seconds between two attempts

log = logging.getLogger(__name__)

Perform = Callable[[Action, Experiment | None], None]


class Books:
    """Hands actions out, each at most once at a time, and notes how they went."""

    def __init__(self, perform: Perform, wake: Wake) -> None:
        self._perform = perform
        self._wake = wake
        self._lock = threading.Lock()
        self._busy: set[Action] = set()
        self._asked: set[Stop] = set()
        self._problems: dict[Action, Problem] = {}
        self._again: dict[Action, datetime] = {}
        self._hands: dict[HostName, ThreadPoolExecutor] = {}

    def busy(self) -> frozenset[Action]:
        """The actions under way."""
        with self._lock:
            return frozenset(self._busy)

    def problems(self) -> Mapping[Action, Problem]:
        """The actions that went wrong the last time."""
        with self._lock:
            return dict(self._problems)

    def begin(self, actions: tuple[Action, ...], experiments: Mapping[int, Experiment]) -> None:
        """Begin every action that is neither under way, nor done for good, nor waiting for its next attempt."""
        moment = now()
        for action in actions:
            with self._lock:
                if action in self._busy or action in self._asked or moment < self._again.get(action, moment):
                    continue
                self._busy.add(action)
                if isinstance(action, Stop) and action.signal is Signal.TERM:
                    self._asked.add(action)
                hands = self._hand(action)
            hands.submit(self._run, action, experiments.get(owner_of(action)))

    def forget(self, experiments: frozenset[int]) -> None:
        """Drop the notes about experiments that are no more."""
        with self._lock:
            for notes in (self._problems, self._again):
                for action in [action for action in notes if owner_of(action) not in experiments]:
                    notes.pop(action)

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
                self._problems.pop(action, None)
                self._again.pop(action, None)
                if isinstance(action, Remove):
                    self._asked = {stop for stop in self._asked if stop.key != action.key}
            else:
                self._note(action, trouble)
        if isinstance(action, Start):
            reach(Point.GANG_STARTING)
        self._wake.set()

    def _note(self, action: Action, trouble: RisemlError) -> None:
        log.warning("%s: %s", action, trouble.message)
        moment = now()
        permanent = isinstance(trouble, EngineError) and trouble.permanent
        message = trouble.message if trouble.hint is None else f"{trouble.message} ({trouble.hint})"
        fresh = Problem(message, permanent, moment, 1, isinstance(trouble, SubnetTaken))
        known = self._problems.get(action)
        problem = fresh if known is None else replace(fresh, since=known.since, count=known.count + 1)
        self._problems[action] = problem
        self._again[action] = moment + timedelta(seconds=min(_LONGEST_PAUSE, 0.5 * 2**problem.count))
        if isinstance(action, Stop):
            self._asked.discard(action)
