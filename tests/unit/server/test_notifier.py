"""Notifications wake their reader at once; many at a time wake it few times, and none is missed."""

from __future__ import annotations

import asyncio

from riseml.server.reconcile.notifier import _MOMENT, Notifier

DEADLINE = 60.0


def test_the_first_news_say_whether_more_than_lines_is_new() -> None:
    async def run() -> None:
        notifier = Notifier()
        with notifier.subscribe((1, 3)) as bell:
            assert bell.take_changed() == {1, 3}, "the first look is at everything"
            notifier.publish_lines(1)
            assert await bell.wait_for_change(DEADLINE)
            assert bell.take_changed() == set()
            notifier.publish_records(1)
            notifier.publish_lines(1)
            assert await bell.wait_for_change(DEADLINE)
            assert bell.take_changed() == {1}
            notifier.publish_records(2)
            assert not await bell.wait_for_change(0.05), "somebody else's"

    asyncio.run(run())


def test_a_flood_wakes_few_times_and_its_last_news_are_heard() -> None:
    async def run() -> tuple[int, float]:
        notifier, wakes, known, grown = Notifier(), 0, 0, [0]
        begun = asyncio.get_running_loop().time()

        def flood() -> None:
            for _ in range(5000):
                grown[0] += 1
                notifier.publish_lines(1)

        with notifier.subscribe((1,)) as bell:
            flooding = asyncio.create_task(asyncio.to_thread(flood))
            while known < 5000:
                assert await bell.wait_for_change(DEADLINE)
                bell.take_changed()
                known, wakes = grown[0], wakes + 1
            await flooding
        moments = (asyncio.get_running_loop().time() - begun) / _MOMENT
        return known, wakes / (moments + 2)  # more than the first one and the last one

    known, rate = asyncio.run(run())
    assert known == 5000
    assert rate <= 1, "at most once a moment"
