"""The merged stream: a client that gets no other entry gets pings, whatever keeps the server busy."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from riseml.base.names import parse_id
from riseml.base.states import State
from riseml.server.api.merged_log import log_stream
from riseml.server.api.merged_log.log_stream import stream_entries
from riseml.server.api.merged_log.stream_cursor import parse_stream_cursor
from riseml.server.api.merged_log.stream_request import StreamRequest
from tests.unit.server.test_stream import DEADLINE, Scene, parse, shown


def test_a_reader_of_a_quiet_job_gets_pings_while_another_job_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client takes a connection without any entry for a lost one; and it goes on behind what was left out."""
    scene, left = Scene(tmp_path), [4, 3, 2]
    monkeypatch.setattr("riseml.server.api.merged_log.log_stream._HEARTBEAT", 0.0)

    async def let_it_print(*_: object) -> bool:
        if left:
            scene.write("worker.1", (left.pop(), "step"))
        else:
            scene.save(State.FINISHED, 10, closed=True)
        return True

    monkeypatch.setattr("riseml.server.reconcile.notifier.Subscription.wait_for_change", let_it_print)
    scene.save(State.RUNNING, 1)
    entries = scene.read(name="1.master", follow=True)
    pings = [entry["cursor"] for entry in entries if entry["type"] == "ping"]
    assert len(set(pings[:3])) == 3, "each is behind one more line"
    last = ["1.master state FINISHED", "1 end FINISHED"]
    assert [word for word in shown(entries) if "ping" not in word][-2:] == last
    monkeypatch.undo()
    assert shown(scene.read(pings[2], name="1.master")) == last


def test_a_tail_that_takes_long_sends_pings_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last lines of many large logs take longer than a client waits for an answer."""
    scene, is_told, read_tail = Scene(tmp_path), threading.Event(), log_stream._read_tail
    monkeypatch.setattr(log_stream, "_HEARTBEAT", 0.001)

    def read_slowly(*arguments: Any) -> Any:
        assert is_told.wait(DEADLINE), "no ping came"
        return read_tail(*arguments)

    monkeypatch.setattr(log_stream, "_read_tail", read_slowly)
    scene.save(State.RUNNING, 1)
    scene.write("master", (2, "a"), (3, "b"))

    async def run() -> list[str]:
        request = StreamRequest(parse_id("1"), (1,), follow=False, positions=parse_stream_cursor("", 1), tail=1)
        found = []
        async for piece in stream_entries(request, scene.experiments, scene.logs, scene.notifier):
            is_told.set()
            found += [word for word in shown(list(parse(piece))) if "ping" not in word]
        return found

    assert asyncio.run(run()) == ["1.master b"]
