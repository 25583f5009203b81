"""The routes of the server itself: its properties, its stop, the web page's listener, and the feed of all changes."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Body, Header, Path, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from riseml import wire
from riseml.base.errors import NotFound, Refused, RisemlError
from riseml.base.wire_revision import find_package
from riseml.model import Caller
from riseml.server.api.callers import CallerOf
from riseml.server.api.views.pool_views import find_swarm_trouble, show_hosts
from riseml.server.api.views.record_views import show_time
from riseml.server.api.waiting import wait_for_hosts
from riseml.server.gate.request_caller import ask_for_caller
from riseml.server.hosts.mode import LocalMode
from riseml.server.reconcile.notifier import FeedSubscription, Notifier
from riseml.server.services import Services
from riseml.server.web.access import OpenSession
from riseml.server.web.listener import WebListener
from riseml.store.changes import ChangeLog

_FEED_HEARTBEAT = 15.0  # seconds between two messages at most
_MOST_NAMED = 500  # experiments in one event; when more have changed, the client reads everything again
_CURSOR_PLACE = re.compile(r"([0-9]{1,18})-([0-9]{1,18})", re.ASCII)  # in a cursor
_NO_CHANGES: wire.Changes = {"changed": [], "grown": [], "reset": False}

_EVENT_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"description": "events of `Changes`", "content": {"text/event-stream": {"schema": {"type": "string"}}}}
}

log = logging.getLogger(__name__)


def add_server_routes(router: APIRouter, services: Services) -> None:
    """Add /server and /system."""

    @router.get("/server")
    def read_server() -> wire.ServerView:
        return show_server(services)

    @router.post("/server/stop")
    def stop_server() -> wire.ServerView:
        view = show_server(services)  # before the stop: a store that is silent must not delay the answer beyond it
        services.request_stop()
        return view

    @router.post("/server/key", status_code=204, response_class=Response)
    def rotate_key() -> Response:
        services.stores.seals.rotate(services.stores.experiments.reseal_variables, services.stores.secrets.reseal)
        services.loops.wake.set()
        log.info("the key of secrets and variables was replaced")
        return Response(status_code=204)

    @router.get("/system")
    def read_system(caller: CallerOf) -> wire.SystemView:
        wait_for_hosts(services.loops)
        return {"server": show_server(services), "hosts": show_hosts(services, caller)}


def show_server(services: Services) -> wire.ServerView:
    """Return the properties of this server for clients."""
    info = services.info
    hosts = services.hosts
    counts = services.watchers.open_counter.count()
    return {
        "version": info.version,
        "revision": info.revision,
        "package": find_package(),
        "id": info.id,
        "pid": info.pid,
        "started_at": show_time(info.started_at) or "",
        "home": str(services.settings.home),
        "executor": hosts.executor_name,
        "note": hosts.notice or find_swarm_trouble(services.loops),
        "missing_engine": hosts.find_missing_engine(),
        "engine": services.settings.engine if isinstance(hosts.mode, LocalMode) else "",
        "output": str(services.settings.output),
        "data": str(services.settings.data),
        "problem": services.loops.passes.problem or counts.problem,
        "active": counts.active,
        "closing": counts.closing,
        "searches": counts.searches,
        "state": "serving",
        "holder": "",
        "holder_since": "",
        "holder_address": "",
    }


class _ListenerRequest(BaseModel):
    """`wire.WebRequest`, checked."""

    model_config = ConfigDict(extra="forbid")

    port: Annotated[int, Field(ge=1, le=65_535)] | None = None


def add_web_routes(router: APIRouter, listener: WebListener, *, is_team: bool) -> None:
    """Add /web, which opens the page and gives an address for one browser, or closes it. The gate of the web page lets
    none of these through. A server for a team opens none: this listener has no TLS.
    """

    @router.post("/web")
    async def open_page(request: Request, chosen: Annotated[_ListenerRequest, Body()]) -> wire.WebView:
        if is_team:
            raise Refused("the server of a team opens no page without TLS", "open its https:// address in a browser")
        port = await listener.open(request.app, chosen.port)
        url = f"http://127.0.0.1:{port}/enter?token={listener.access.make_token()}"
        return {"open": True, "port": port, "url": url}

    @router.get("/web/sessions")
    def list_sessions() -> wire.WebSessions:
        return {"sessions": [_show_session(session) for session in listener.access.list_sessions()]}

    @router.post("/web/sessions/{name}/end")
    def end_session(name: Annotated[str, Path(max_length=32)]) -> wire.WebSessions:
        if not listener.access.end_session(name):
            raise NotFound(f"the page has no session {name}", "`riseml web --sessions` lists them")
        return {"sessions": [_show_session(session) for session in listener.access.list_sessions()]}

    @router.post("/web/close")
    async def close_page() -> wire.WebView:
        await listener.close()
        return {"open": False, "port": None, "url": None}


def _show_session(session: OpenSession) -> wire.WebSessionView:
    opened, until = (datetime.fromtimestamp(at, UTC) for at in (session.opened_at, session.until))
    return {"id": session.name, "opened_at": show_time(opened) or "", "until": show_time(until) or ""}


def add_change_routes(router: APIRouter, services: Services) -> None:
    """Add /changes, the feed of all changes, as server-sent events: a page that shows many experiments follows this one
    stream.
    """

    @router.get("/changes", response_class=StreamingResponse, responses=_EVENT_STREAM)
    async def follow_changes(
        request: Request,
        last_event_id: Annotated[str, Header(max_length=100, description="the id of the last event")] = "",
    ) -> StreamingResponse:
        feed = follow_feed(
            services.loops.notifier,
            services.stores.experiments.changes,
            services.info.started_at.isoformat(),
            last_event_id,
            lambda: ask_for_caller(request.scope),
        )
        headers = {"Cache-Control": "no-store"}
        return StreamingResponse(feed, media_type="text/event-stream", headers=headers)


async def follow_feed(
    notifier: Notifier, changes: ChangeLog, server: str, cursor: str, find_caller: Callable[[], Caller]
) -> AsyncGenerator[bytes]:
    """Yield the events that a caller sees after a cursor, and a comment when no event came for a while.

    It asks for the caller before each event: who has left a project hears nothing more of it, and who has joined one
    hears of it at once. It ends when they may not come in any more.

    A cursor is `<id of the last event of the store>-<notifications>@<server process>`. A cursor of an earlier process
    gets a reset: its last notifications may have been lost.
    """
    with notifier.subscribe_to_all() as subscription:
        subscription.take_changed()
        last, first = await asyncio.to_thread(_begin_feed, notifier, changes, (server, cursor), find_caller())
        yield _encode_event(f"{last}@{server}", first)
        while True:
            if not await subscription.wait_for_change(_FEED_HEARTBEAT):
                yield b": still here\n\n"
                continue
            try:
                caller = await asyncio.to_thread(find_caller)
            except RisemlError as error:
                log.debug("a feed of changes ends: %s", error.message)
                return
            last, event = await asyncio.to_thread(_read_changes, notifier, subscription, changes, caller)
            if event != _NO_CHANGES:  # otherwise they see none of what has changed
                yield _encode_event(f"{last}@{server}", event)


def _begin_feed(
    notifier: Notifier, changes: ChangeLog, reader: tuple[str, str], caller: Caller
) -> tuple[str, wire.Changes]:
    """Return where the feed is, and the experiments that have changed, or whose logs have grown, since the cursor."""
    server, cursor = reader
    event = changes.find_last_event()
    count = notifier.count_notifications()
    last = f"{event}-{count}"
    if not cursor:
        return last, _NO_CHANGES
    place, _, process = cursor.partition("@")
    match = _CURSOR_PLACE.fullmatch(place)
    if process != server or match is None or int(match[1]) > event or int(match[2]) > count:
        return last, {**_NO_CHANGES, "reset": True}
    changed, grown = notifier.list_since(int(match[2]))
    keys = changes.list_changed(int(match[1]), _MOST_NAMED + 1)
    return last, _show_changes(changes, changed.union(keys), grown, caller)


def _read_changes(
    notifier: Notifier, subscription: FeedSubscription, changes: ChangeLog, caller: Caller
) -> tuple[str, wire.Changes]:
    # Read first: what comes later is notified, and belongs after the cursor.
    last = f"{changes.find_last_event()}-{notifier.count_notifications()}"
    changed = subscription.take_changed()
    grown = subscription.take_grown()
    return last, _show_changes(changes, changed, grown, caller)


def _show_changes(changes: ChangeLog, changed: frozenset[int], grown: frozenset[int], caller: Caller) -> wire.Changes:
    if len(changed | grown) > _MOST_NAMED:
        return {**_NO_CHANGES, "reset": True}
    names = changes.name_experiments(changed | grown, caller)
    return {
        "changed": [names[key] for key in sorted(changed) if key in names],
        "grown": [names[key] for key in sorted(grown) if key in names],
        "reset": False,
    }


def _encode_event(cursor: str, event: wire.Changes) -> bytes:
    return f"id: {cursor}\ndata: {json.dumps(event)}\n\n".encode()
