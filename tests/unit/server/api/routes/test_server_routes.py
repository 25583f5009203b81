"""The feed of changes: what changed, what grew, and where a client goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from riseml.base.errors import Unauthenticated
from riseml.base.roles import Role
from riseml.model import Caller
from riseml.server.api.routes.server_routes import follow_feed
from riseml.server.reconcile.notifier import Notifier
from riseml.store.changes import ChangeLog
from tests.support.callers import ME


class KnownChanges(ChangeLog):
    """Events of which `changed` belong to experiments 1 and 2 of the store."""

    def __init__(self) -> None:
        self.last = 7

    def find_last_event(self) -> int:
        return self.last

    def list_changed(self, after: int, most: int) -> tuple[int, ...]:
        return tuple(range(1, self.last - after + 1))[:most]

    def name_experiments(self, keys: Any, caller: object) -> dict[int, str]:
        return {key: f"{key}.1" for key in keys}


async def read(feed: AsyncIterator[bytes]) -> tuple[str, Any]:
    head, data = (await anext(feed)).decode().strip().split("\n")
    return head.removeprefix("id: "), json.loads(data.removeprefix("data: "))


def test_the_feed_tells_changes_and_growth() -> None:
    async def run() -> None:
        notifier = Notifier()
        feed = follow_feed(notifier, KnownChanges(), "now", "", lambda: ME)
        assert await read(feed) == ("7-0@now", {"changed": [], "grown": [], "reset": False})
        assert notifier.count_feeds() == 1
        notifier.publish_records(3)
        notifier.publish_lines(4)
        cursor, found = await read(feed)
        assert cursor == "7-2@now"
        assert found == {"changed": ["3.1"], "grown": ["4.1"], "reset": False}
        await feed.aclose()  # it is a generator
        assert notifier.count_feeds() == 0

    asyncio.run(run())


def test_the_feed_asks_for_the_rights_of_the_moment() -> None:
    """A user who has left a project hears nothing more of it, and one whose key has ended hears nothing at all."""

    class SharedChanges(KnownChanges):
        looks = 0

        def name_experiments(self, keys: Any, caller: Any) -> dict[int, str]:
            self.looks += 1
            return {key: f"paul.{key}" for key in keys if caller.projects}

    async def run() -> None:
        notifier = Notifier()
        member = replace(ME, projects=(("vision", Role.VIEWER),))
        answers: list[Caller | None] = [member, member, ME, member, None]

        def ask() -> Caller:
            caller = answers.pop(0)
            if caller is None:
                raise Unauthenticated("this key is not valid")
            return caller

        changes = SharedChanges()
        feed = follow_feed(notifier, changes, "now", "", ask)
        await read(feed)
        for key in (3, 4):
            notifier.publish_records(key)
            if key == 3:
                assert (await read(feed))[1]["changed"] == ["paul.3"]
        following = asyncio.ensure_future(read(feed))
        while changes.looks < 2:
            await asyncio.sleep(0)
        assert not following.done(), "nothing is said of 4, which is not visible now"
        notifier.publish_records(5)
        assert (await following)[1]["changed"] == ["paul.5"], "and what is visible again is told"
        notifier.publish_records(6)
        assert [event async for event in feed] == []

    asyncio.run(run())


def test_a_cursor_goes_on_and_one_of_another_server_begins_again() -> None:
    async def first(cursor: str) -> Any:
        feed = follow_feed(Notifier(), KnownChanges(), "now", cursor, lambda: ME)
        found = await read(feed)
        await feed.aclose()
        return found[1]

    assert asyncio.run(first("5-0@now"))["changed"] == ["1.1", "2.1"]
    for odd in ("5-0@then", "8-0@now", "7-1@now", "7@now", "x@now", "-1@now", "@", "²-0@now"):
        assert asyncio.run(first(odd)) == {"changed": [], "grown": [], "reset": True}, odd


def test_a_cursor_goes_on_with_what_was_notified_while_no_stream_was_there() -> None:
    """A job prints its last lines, and an actor notes something that is no event, while the browser connects again."""

    async def run() -> Any:
        notifier = Notifier()
        feed = follow_feed(notifier, KnownChanges(), "now", "", lambda: ME)
        await read(feed)
        notifier.publish_lines(4)
        cursor, _ = await read(feed)
        await feed.aclose()
        notifier.publish_lines(5)
        notifier.publish_records(6)
        return (await read(follow_feed(notifier, KnownChanges(), "now", cursor, lambda: ME)))[1]

    assert asyncio.run(run()) == {"changed": ["6.1"], "grown": ["5.1"], "reset": False}


def test_too_many_changes_are_a_reset() -> None:
    async def run() -> Any:
        notifier = Notifier()
        feed = follow_feed(notifier, KnownChanges(), "now", "", lambda: ME)
        await read(feed)
        for key in range(600):
            notifier.publish_records(key)
        found = await read(feed)
        await feed.aclose()
        return found[1]

    assert asyncio.run(run())["reset"] is True
