"""A request for a pass ends the wait of the loop."""

from __future__ import annotations

import threading

from riseml.server.reconcile.wake import Wake
from tests.support.waiting import DEADLINE


def begin_wait(wake: Wake) -> threading.Event:
    """Wait in another thread, and return what is set once the wait is over."""
    ended = threading.Event()

    def run() -> None:
        wake.wait(10 * DEADLINE)
        ended.set()

    threading.Thread(target=run, daemon=True).start()
    return ended


def test_a_request_before_the_wait_or_during_it_ends_the_wait() -> None:
    wake = Wake()
    wake.set()
    assert begin_wait(wake).wait(DEADLINE)
    ended = begin_wait(wake)
    wake.set()
    assert ended.wait(DEADLINE)


def test_requests_before_a_wait_count_once() -> None:
    wake = Wake()
    wake.set()
    wake.set()
    wake.wait(0.0)
    ended = begin_wait(wake)
    assert not ended.wait(0.05)
    wake.set()
    assert ended.wait(DEADLINE)
