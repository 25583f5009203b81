"""The action tracker: pauses and lasting problems by a monotonic clock, and no note about removed things."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest

from riseml.base.errors import EngineError
from riseml.base.names import HostName, JobName
from riseml.control.actions import (
    Action,
    CancelData,
    CancelImage,
    CancelRestore,
    FetchData,
    ReleaseHost,
    RestoreOutput,
    Signal,
    StopJob,
)
from riseml.executors.base import WorkCancelled, WorkInterrupted
from riseml.model import Experiment, JobKey
from riseml.server.reconcile.action_tracker import ActionTracker
from riseml.server.reconcile.wake import Wake

NOW = datetime(2026, 8, 31, 7, 23, 40, tzinfo=UTC)
DEADLINE = 60.0  # seconds
HOST = HostName("h1")
RELEASE = ReleaseHost(HOST, 4)


class Scene:
    """A tracker whose actions all fail while `trouble` is there, and a clock that the test turns."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.trouble: EngineError | None = EngineError("it is in use")
        self.performed: list[Action] = []
        self.may_end = threading.Event()  # actions wait for it
        self.may_end.set()
        self.ended = threading.Semaphore(0)  # counts every end
        wake = Wake()
        wake.set = self.ended.release  # type: ignore[method-assign]  # the test counts every end
        self.tracker = ActionTracker(self._perform, wake, lambda: self.seconds)

    def _perform(self, action: Action, experiment: Experiment | None) -> None:
        assert self.may_end.wait(DEADLINE)
        self.performed.append(action)
        if self.trouble is not None:
            raise self.trouble

    def begin(self, action: Action) -> None:
        """Begin it, and wait for its end."""
        before = len(self.performed)
        self.tracker.start_actions((action,), {})
        if self.tracker.list_pending() or len(self.performed) > before:
            assert self.ended.acquire(timeout=DEADLINE)


def test_fetches_that_hold_all_threads_for_data_delay_no_restore() -> None:
    scene, restored = Scene(), threading.Event()

    def perform(action: Action, _: Experiment | None) -> None:
        if isinstance(action, RestoreOutput):
            restored.set()
        else:
            scene.may_end.wait(DEADLINE)

    scene.may_end.clear()
    tracker = ActionTracker(perform, Wake(), lambda: 0.0)
    tracker.start_actions((*(FetchData(HOST, number) for number in range(20)), RestoreOutput(HOST, 21, 2)), {})
    is_restored = restored.wait(5)
    scene.may_end.set()
    assert is_restored


def test_an_action_that_failed_is_tried_again_after_its_pause() -> None:
    scene = Scene()
    scene.begin(RELEASE)
    scene.seconds = 0.9
    scene.begin(RELEASE)
    assert len(scene.performed) == 1
    scene.seconds = 1.1
    scene.begin(RELEASE)
    assert len(scene.performed) == 2


def test_an_action_that_was_cancelled_has_not_failed() -> None:
    scene = Scene()
    scene.begin(RELEASE)
    scene.seconds, scene.trouble = 1.1, WorkCancelled("the copy was cancelled")
    scene.begin(RELEASE)
    assert (len(scene.performed), scene.tracker.list_failures(NOW), scene.tracker.list_pending()) == (
        2,
        {},
        frozenset(),
    )


def test_pauses_and_problems_begin_anew_when_a_part_of_the_work_was_done() -> None:
    scene = Scene()
    for seconds in (0.0, 10.0, 20.0, 40.0):
        scene.seconds = seconds
        scene.begin(RELEASE)
    scene.seconds, scene.trouble = 80.0, WorkInterrupted("the host does not answer")
    scene.begin(RELEASE)
    (failure,) = scene.tracker.list_failures(NOW).values()
    assert (failure.count, failure.since) == (1, NOW)
    scene.seconds, scene.trouble = 81.1, EngineError("it is in use")
    scene.begin(RELEASE)
    (failure,) = scene.tracker.list_failures(NOW).values()
    assert (len(scene.performed), failure.count) == (6, 2)
    assert failure.since == NOW - timedelta(seconds=1.1)


def test_a_problem_lasts_as_long_as_the_clock_says_whatever_the_time_of_day() -> None:
    scene = Scene()
    scene.begin(RELEASE)
    scene.seconds = 40.0
    scene.begin(RELEASE)
    problem = scene.tracker.list_failures(NOW)[RELEASE]
    assert (problem.since, problem.count) == (NOW - timedelta(seconds=40), 2)
    scene.seconds = 400.0
    problem = scene.tracker.list_failures(NOW)[RELEASE]
    assert (problem.since, problem.lasted) == (NOW - timedelta(seconds=400), timedelta(seconds=40)), "no try since"


def test_the_message_of_a_failure_fits_into_a_record_and_a_log(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    scene.trouble = EngineError("the folder of the job cannot be used: File name too long: caf\udce9\0.py")
    scene.begin(RELEASE)
    message = scene.tracker.list_failures(NOW)[RELEASE].message
    assert message == r"the folder of the job cannot be used: File name too long: caf\udce9\x00.py"
    assert caplog.messages[-1].endswith(message)


def test_an_action_that_fails_for_days_is_still_tried_in_its_time() -> None:
    scene = Scene()
    for count in range(1200):
        scene.seconds = 31.0 * count
        scene.begin(RELEASE)
    assert scene.tracker.list_failures(NOW)[RELEASE].count == 1200
    scene.begin(RELEASE)
    assert len(scene.performed) == 1200, "its pause is not over"


def test_the_tracker_forgets_experiments_that_are_closed() -> None:
    scene = Scene()
    stop = StopJob(HOST, JobKey(4, JobName("master"), 1), Signal.TERM)
    scene.begin(RELEASE)
    scene.trouble = None
    scene.begin(stop)
    scene.tracker.forget_experiments_except(frozenset())
    assert scene.tracker.list_failures(NOW) == {}
    scene.begin(stop)
    assert scene.performed.count(stop) == 2, "the tracker performs a forgotten stop again"


@pytest.mark.parametrize(
    "order",
    [
        StopJob(HOST, JobKey(4, JobName("master"), 1), Signal.KILL),
        CancelImage(HOST, 4, "tf:2"),
        CancelData(HOST, 4),
        CancelRestore(HOST, 4),
    ],
    ids=str,
)
def test_an_order_without_effect_is_given_again_after_a_pause(order: Action) -> None:
    """The end of each action asks for a pass, so without a pause the loop would give it again and again."""
    scene = Scene()
    scene.trouble = None
    at = [0.0]  # seconds when it was given
    scene.begin(order)
    for quarter in range(1, 4 * 30):
        scene.seconds = quarter / 4
        scene.begin(order)
        if len(scene.performed) > len(at):
            at.append(scene.seconds)
    assert at == [0, 1, 3, 7, 11, 15, 19, 23, 27]


def test_what_was_pending_when_a_late_host_was_asked_counts_as_pending_until_it_answers() -> None:
    scene = Scene()
    scene.may_end.clear()
    scene.tracker.start_actions((RELEASE,), {})
    assert scene.tracker.list_pending() == {RELEASE}
    scene.may_end.set()
    assert scene.ended.acquire(timeout=DEADLINE)
    assert scene.tracker.list_pending(frozenset({HOST})) == {RELEASE}, "the host's answer may be older than the end"
    assert scene.tracker.list_pending(frozenset({HOST})) == {RELEASE}
    assert scene.tracker.list_pending(frozenset({HostName("h2")})) == frozenset()
    assert scene.tracker.list_pending(frozenset({HOST})) == frozenset(), "it has been asked since"
