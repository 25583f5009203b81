"""A client that only says that it is there: `tensorboard` and `notebook` hold it open beside their forward."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from riseml.base.errors import Conflict, RisemlError, StoreError
from riseml.base.settings import Settings
from riseml.base.stream_messages import StreamFailure, StreamMessage, StreamReady, decode_message
from riseml.server.api.routes import stream_routes
from riseml.server.app import Application, make_application
from tests.support.callers import call_as

WEBSOCKET: dict[str, Any] = {"type": "websocket", "headers": [], "query_string": b"", "subprotocols": []}


async def attend(application: Application, path: str) -> list[StreamMessage]:
    """Attend until the server closes, and return what it said. Each message wakes it once more."""
    received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    received.put_nowait({"type": "websocket.connect"})
    said: list[StreamMessage] = []

    async def send(message: Any) -> None:
        if message["type"] == "websocket.send":
            said.append(decode_message(message["bytes"]))

    await call_as(application.api)({**WEBSOCKET, "path": path, "raw_path": path.encode()}, received.get, send)
    return said


def test_a_store_that_does_not_answer_for_a_moment_ends_no_presence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[int | RisemlError] = [
        7,
        7,
        StoreError("the disk is full", "free some space"),
        7,
        Conflict("experiment 7 has ended", ""),
    ]

    def find_running(name: str, caller: object, services: object) -> int:
        made.services.loops.notifier.publish_records(7)  # so that the server asks again at once
        answer = answers.pop(0)
        if isinstance(answer, RisemlError):
            raise answer
        return answer

    made = make_application(Settings(tmp_path, tmp_path, tmp_path, executor="process"), threading.Event())
    monkeypatch.setattr(stream_routes, "find_running", find_running)
    ready, ended = asyncio.run(attend(made, "/v1/experiments/7/presence"))
    assert isinstance(ready, StreamReady)
    assert isinstance(ended, StreamFailure)
    assert (ended.message, answers) == ("experiment 7 has ended", [])
    made.services.hosts.close()
    made.database.close()
