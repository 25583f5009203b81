"""Notifications wake a reader at once; many at a time wake it few times, and the reader misses none."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import Any

import pytest

from riseml.server.reconcile.notifier import _LEAST_INTERVAL, Notifier

DEADLINE = 60.0


def test_a_notification_says_whether_records_changed() -> None:
    async def run() -> None:
        notifier = Notifier()
        with notifier.subscribe((1, 3)) as subscription:
            assert subscription.take_changed() == {1, 3}, "the first read is of everything"
            notifier.publish_lines(1)
            assert await subscription.wait_for_change(DEADLINE)
            assert subscription.take_changed() == set()
            notifier.publish_records(1)
            notifier.publish_lines(1)
            assert await subscription.wait_for_change(DEADLINE)
            assert subscription.take_changed() == {1}
            notifier.publish_records(2)
            assert not await subscription.wait_for_change(0.05), "another experiment's"

    asyncio.run(run())


def test_a_flood_wakes_the_reader_few_times_and_after_its_last_notification() -> None:
    async def run() -> tuple[int, float]:
        notifier, wakes, known, grown = Notifier(), 0, 0, [0]
        begun = asyncio.get_running_loop().time()

        def flood() -> None:
            for _ in range(5000):
                grown[0] += 1
                notifier.publish_lines(1)

        with notifier.subscribe((1,)) as subscription:
            flooding = asyncio.create_task(asyncio.to_thread(flood))
            while known < 5000:
                assert await subscription.wait_for_change(DEADLINE)
                subscription.take_changed()
                known, wakes = grown[0], wakes + 1
            await flooding
        intervals = (asyncio.get_running_loop().time() - begun) / _LEAST_INTERVAL
        return known, wakes / (intervals + 2)  # the first and the last wake come beside them

    known, rate = asyncio.run(run())
    assert known == 5000
    assert rate <= 1, "at most once in each interval"


def test_many_readers_are_woken_by_one_call_of_their_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> tuple[int, int]:
        notifier = Notifier()
        loop = asyncio.get_running_loop()
        calls: list[object] = []
        call = loop.call_soon_threadsafe

        def note_call(*call_arguments: Any) -> object:
            calls.append(call_arguments)
            return call(*call_arguments)

        with ExitStack() as open_subscriptions:
            readers = [open_subscriptions.enter_context(notifier.subscribe((1,))) for _ in range(50)]
            for reader in readers:
                reader.take_changed()
            monkeypatch.setattr(loop, "call_soon_threadsafe", note_call)
            notifier.publish_lines(1)
            woken = await asyncio.gather(*(reader.wait_for_change(DEADLINE) for reader in readers))
        return len(calls), sum(woken)

    assert asyncio.run(run()) == (1, 50)
