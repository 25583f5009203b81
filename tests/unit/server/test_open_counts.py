"""How much is open is known at once, also while the store does not answer."""

from __future__ import annotations

import threading

import pytest

from riseml.base.errors import StoreError
from riseml.server import open_counts
from riseml.server.open_counts import OpenCounter, OpenCounts
from tests.support.waiting import DEADLINE


def test_a_store_that_refuses_leaves_the_last_counts_and_its_reason() -> None:
    answers = [OpenCounts(2, 1, 0), None, OpenCounts(3, 0, 0)]

    def read() -> OpenCounts:
        found = answers.pop(0)
        if found is None:
            raise StoreError("the store is away", "is it running?")
        return found

    counter = OpenCounter(read, "store", may_hang=True)
    assert counter.count() == OpenCounts(2, 1, 0)
    assert counter.count() == OpenCounts(2, 1, 0, "the store is away; is it running?")
    assert counter.count() == OpenCounts(3, 0, 0)


def test_a_store_that_is_silent_is_named_and_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_counts, "_PATIENCE", 0.01)
    answers, asked = threading.Event(), threading.Semaphore(0)

    def read() -> OpenCounts:
        asked.release()
        answers.wait(DEADLINE)
        return OpenCounts(1, 0, 0)

    counter = OpenCounter(read, "postgresql://db/riseml", may_hang=True)
    for _ in range(5):
        counts = counter.count()
        assert counts.problem.startswith("the store postgresql://db/riseml has not answered for")
    assert asked.acquire(blocking=False)
    assert not asked.acquire(blocking=False), "one thread waits, however often it was asked"
    answers.set()
    monkeypatch.setattr(open_counts, "_PATIENCE", DEADLINE)
    assert counter.count() == OpenCounts(1, 0, 0)
