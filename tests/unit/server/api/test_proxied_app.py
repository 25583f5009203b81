"""A tab that shows a TensorBoard counts as a client of it until the tab is closed, or the experiment has ended."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from riseml.base.errors import Conflict, RisemlError, StoreError
from riseml.base.settings import Settings
from riseml.server.api import proxied_app as proxied_app_module
from riseml.server.app import Application, make_application
from tests.support.callers import call_as

REQUEST: dict[str, Any] = {"type": "http", "method": "GET", "headers": [], "query_string": b"", "root_path": ""}


async def ask(application: Application, path: str) -> list[dict[str, Any]]:
    """Ask the server, and return the messages of its answer."""
    said: list[dict[str, Any]] = []
    received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    received.put_nowait({"type": "http.request", "body": b""})

    async def send(message: Any) -> None:
        said.append(message)

    await call_as(application.api)({**REQUEST, "path": path, "raw_path": path.encode()}, received.get, send)
    return said


def test_an_open_tab_is_a_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[int | RisemlError] = [7, 7, StoreError("the disk is full", ""), 7, Conflict("7 has ended (KILLED)")]
    clients: list[int] = []

    def find_running(name: str, caller: object, services: object) -> int:
        made.services.loops.notifier.publish_records(7)  # so that the server asks again at once
        uses = made.services.watchers.attendance._uses
        clients.append(uses[7].clients if 7 in uses else 0)
        answer = answers.pop(0)
        if isinstance(answer, RisemlError):
            raise answer
        return answer

    made = make_application(Settings(tmp_path, tmp_path, tmp_path, executor="process"), threading.Event())
    monkeypatch.setattr(proxied_app_module, "find_running", find_running)
    start, *parts = asyncio.run(ask(made, "/apps/7/.riseml/presence"))
    assert start["status"] == 200
    assert b"".join(part["body"] for part in parts) == b"\n\n\n7 has ended (KILLED)"
    assert clients == [0, 1, 1, 1, 1]
    assert made.services.watchers.attendance._uses[7].clients == 0
    start, body = asyncio.run(ask(made, "/apps/9/"))
    assert (start["status"], body["body"]) == (
        502,
        b"there is no experiment 9\n`riseml status -a` lists all of yours\n",
    )
    answers.append(StoreError("the disk is full", ""))
    start, body = asyncio.run(ask(made, "/apps/7/.riseml/presence"))
    assert (start["status"], body["body"]) == (503, b"the disk is full\n"), "the page asks again"
    made.services.hosts.close()
    made.database.close()
