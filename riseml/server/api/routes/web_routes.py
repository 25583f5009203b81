"""The routes of the web page's door: open it and get an address for one browser, or close it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Request
from pydantic import BaseModel, ConfigDict, Field

from riseml import wire
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

    @router.post("/web/close")
    async def close_page() -> wire.WebView:
        await door.close()
        return {"open": False, "port": None, "url": None}
