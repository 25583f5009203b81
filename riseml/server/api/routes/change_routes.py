"""The feed of all changes, as server-sent events. A page that shows many experiments follows this one stream."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from typing import Annotated, Any

from fastapi import APIRouter, Header
from fastapi.responses import StreamingResponse

from riseml import wire
from riseml.server.reconcile.notifier import FeedSubscription, Notifier
from riseml.server.services import Services
from riseml.store.changes import ChangeLog

_HEARTBEAT = 15.0  # seconds between two messages at most
_MOST_NAMED = 500  # experiments in one event; when more have changed, the client reads everything again
_PLACE = re.compile(r"([0-9]{1,18})-([0-9]{1,18})", re.ASCII)  # in a cursor
_NONE: wire.Changes = {"changed": [], "grown": [], "reset": False}

_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"description": "events of `Changes`", "content": {"text/event-stream": {"schema": {"type": "string"}}}}
}


def add_change_routes(router: APIRouter, services: Services) -> None:
    """Add /changes."""

    @router.get("/changes", response_class=StreamingResponse, responses=_EVENTS)
    async def follow_changes(
        last_event_id: Annotated[str, Header(max_length=100, description="the id of the last event")] = "",
    ) -> StreamingResponse:
        feed = follow_feed(
            services.notifier, services.experiments.changes, services.info.started_at.isoformat(), last_event_id
        )
        headers = {"Cache-Control": "no-store"}
        return StreamingResponse(feed, media_type="text/event-stream", headers=headers)


async def follow_feed(notifier: Notifier, changes: ChangeLog, server: str, cursor: str) -> AsyncGenerator[bytes]:
    """Yield the events after a cursor, without end, and a comment when no event came for a while.

    A cursor is `<id of the last event of the store>-<notifications>@<server process>`. A cursor of an earlier process
    gets a reset: its last notifications may have been lost.
    """
    with notifier.subscribe_to_all() as subscription:
        subscription.take_changed()
        last, first = await asyncio.to_thread(_begin_feed, notifier, changes, server, cursor)
        yield _encode(f"{last}@{server}", first)
        while True:
            if not await subscription.wait_for_change(_HEARTBEAT):
                yield b": still here\n\n"
                continue
            last, event = await asyncio.to_thread(_read_changes, notifier, subscription, changes)
            yield _encode(f"{last}@{server}", event)


def _begin_feed(notifier: Notifier, changes: ChangeLog, server: str, cursor: str) -> tuple[str, wire.Changes]:
    """Return where the feed is, and the experiments that have changed, or whose logs have grown, since the cursor."""
    event = changes.find_last_event()
    count = notifier.count_notifications()
    last = f"{event}-{count}"
    if not cursor:
        return last, _NONE
    place, _, process = cursor.partition("@")
    match = _PLACE.fullmatch(place)
    if process != server or match is None or int(match[1]) > event or int(match[2]) > count:
        return last, {**_NONE, "reset": True}
    changed, grown = notifier.list_since(int(match[2]))
    keys = changes.list_changed(int(match[1]), _MOST_NAMED + 1)
    return last, _show_changes(changes, changed.union(keys), grown)


def _read_changes(notifier: Notifier, subscription: FeedSubscription, changes: ChangeLog) -> tuple[str, wire.Changes]:
    # Read first: what comes later is notified, and belongs after the cursor.
    last = f"{changes.find_last_event()}-{notifier.count_notifications()}"
    changed = subscription.take_changed()
    grown = subscription.take_grown()
    return last, _show_changes(changes, changed, grown)


def _show_changes(changes: ChangeLog, changed: frozenset[int], grown: frozenset[int]) -> wire.Changes:
    if len(changed | grown) > _MOST_NAMED:
        return {**_NONE, "reset": True}
    names = changes.name_experiments(changed | grown)
    return {
        "changed": [names[key] for key in sorted(changed) if key in names],
        "grown": [names[key] for key in sorted(grown) if key in names],
        "reset": False,
    }


def _encode(cursor: str, event: wire.Changes) -> bytes:
    return f"id: {cursor}\ndata: {json.dumps(event)}\n\n".encode()
