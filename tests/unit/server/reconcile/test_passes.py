"""Threads that wait for a pass which began after their request."""

from __future__ import annotations

import threading

from riseml.server.clock import now
from riseml.server.reconcile.passes import PassCounter
from riseml.server.reconcile.wake import Wake
from tests.support.waiting import DEADLINE


def begin_wait(passes: PassCounter, seconds: float) -> threading.Event:
    """Wait for a pass in another thread, and return what is set once the wait is over."""
    ended = threading.Event()

    def ask() -> None:
        passes.wait_for_full_pass(seconds)
        ended.set()

    threading.Thread(target=ask, daemon=True).start()
    return ended


def test_a_thread_waits_for_the_second_pass_after_its_request() -> None:
    """The first one may have begun before the request."""
    wake = Wake()
    passes = PassCounter(wake, now())
    ended = begin_wait(passes, 10 * DEADLINE)
    wake.wait(DEADLINE)
    passes.complete_pass()
    wake.wait(DEADLINE)
    assert not ended.is_set()
    passes.complete_pass()
    assert ended.wait(DEADLINE)


def test_a_loop_that_stands_still_holds_nobody_up() -> None:
    passes = PassCounter(Wake(), now())
    assert begin_wait(passes, 0.02).wait(DEADLINE)
    assert passes.observation is None
