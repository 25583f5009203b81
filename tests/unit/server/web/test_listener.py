"""The listener of the web page, which several commands open and close at the same time."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

from starlette.responses import PlainTextResponse

from riseml.server.web.access import WebAccess
from riseml.server.web.listener import WebListener
from tests.support.callers import ME

API = PlainTextResponse("nothing")


def find_free_ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports: list[int] = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_of_ports_that_are_asked_for_at_the_same_time_one_stays_open(tmp_path: Path) -> None:
    ports = find_free_ports(2)

    async def run() -> tuple[list[int], int | None, list[bool]]:
        door = WebListener(WebAccess(tmp_path / "web.json"), lambda session: ME)
        first = await door.open(API, None)
        opened = await asyncio.gather(*(door.open(API, port) for port in ports))
        found = opened, door.port, [listens(port) for port in (first, *ports)]
        await door.close()
        return found

    assert asyncio.run(run()) == (ports, ports[1], [False, False, True])
    assert not any(listens(port) for port in ports), "closing leaves no listener"


def test_closing_ends_what_is_about_to_be_opened(tmp_path: Path) -> None:
    (port,) = find_free_ports(1)

    async def run() -> tuple[int | None, int | None]:
        door = WebListener(WebAccess(tmp_path / "web.json"), lambda session: ME)
        await door.open(API, None)
        await asyncio.gather(door.open(API, port), door.close())
        return door.port, door.access.port

    assert asyncio.run(run()) == (None, None)
    assert not listens(port)
