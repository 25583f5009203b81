"""The routes of the web page's door: open it and get an address for one browser, or close it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Body, Path, Request
from pydantic import BaseModel, ConfigDict, Field

from riseml import wire
from riseml.base.errors import NotFound
from riseml.server.api.views.record_views import show_time
from riseml.server.web.access import OpenSession
from riseml.server.web.door import WebDoor


class _DoorOrder(BaseModel):
    """`wire.WebOrder`, checked."""

    model_config = ConfigDict(extra="forbid")

    port: Annotated[int, Field(ge=1, le=65_535)] | None = None


def add_web_routes(router: APIRouter, door: WebDoor) -> None:
    """Add /web. The gate of the web page lets none of these through."""

    @router.post("/web")
    async def open_page(request: Request, order: Annotated[_DoorOrder, Body()]) -> wire.WebView:
        port = await door.open(request.app, order.port)
        url = f"http://127.0.0.1:{port}/enter?token={door.access.make_token()}"
        return {"open": True, "port": port, "url": url}

    @router.get("/web/sessions")
    def list_sessions() -> wire.WebSessions:
        return {"sessions": [_show_session(session) for session in door.access.list_sessions()]}

    @router.post("/web/sessions/{name}/end")
    def end_session(name: Annotated[str, Path(max_length=32)]) -> wire.WebSessions:
        if not door.access.end_session(name):
            raise NotFound(f"the page has no session {name}", "`riseml web --sessions` lists them")
        return {"sessions": [_show_session(session) for session in door.access.list_sessions()]}

    @router.post("/web/close")
    async def close_page() -> wire.WebView:
        await door.close()
        return {"open": False, "port": None, "url": None}


def _show_session(session: OpenSession) -> wire.WebSessionView:
    opened, until = (datetime.fromtimestamp(at, UTC) for at in (session.opened_at, session.until))
    return {"id": session.name, "opened_at": show_time(opened) or "", "until": show_time(until) or ""}
