"""The merged stream: a client that gets no other entry gets pings, whatever keeps the server busy."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.states import State
from tests.unit.server.test_stream import Scene, shown


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
