"""A server that sends a heartbeat is silent when a read waits for three seconds, and not before."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from riseml.client import silence_watch
from riseml.client.exchange import SilenceNotes
from riseml.client.silence_watch import SilenceWatch
from tests.support.waiting import DEADLINE


class CountedWaits(threading.Event):
    """Is set after some waits, which take no time."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def wait(self, timeout: float | None = None) -> bool:
        self.count -= 1
        return self.count < 0


@pytest.fixture(autouse=True)
def _quick_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence_watch, "_TICK", 0.01)
    monkeypatch.setattr(silence_watch, "PATIENCE", 0.05)


def test_a_read_that_waits_is_told_once_and_each_time() -> None:
    told = threading.Semaphore(0)

    def read() -> Iterator[bytes]:
        for piece in (b"a", b"b"):
            assert told.acquire(timeout=DEADLINE), "the watch notes the silence before each piece"
            yield piece

    with SilenceWatch(told.release) as watch:
        assert list(watch.watch(read())) == [b"a", b"b"]
    assert not told.acquire(blocking=False), "once each"


def test_a_reader_that_takes_long_for_a_piece_waits_for_no_server() -> None:
    told: list[int] = []
    watch = SilenceWatch(lambda: told.append(1))
    pieces = watch.watch(iter([b"a", b"b"]))
    assert next(pieces) == b"a"
    watch._closed = CountedWaits(100)
    watch._count_ticks()
    assert next(pieces) == b"b"
    assert not told


def test_each_silence_and_each_answer_after_it_is_told_once() -> None:
    notes = SilenceNotes()
    told: list[int] = []
    notes.on_silence, notes.on_answer = told.append, lambda: told.append(0)
    notes.end()
    for _ in range(2):
        notes.begin(7)
        notes.begin(7)
        notes.end()
        notes.end()
    assert told == [7, 0, 7, 0]
