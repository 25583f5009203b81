"""Containers that end without a server have the times of their engine."""

from __future__ import annotations

import threading

from tests.support.rig import Rig, gang, single

AWAY = 5.0  # seconds without a server


def test_containers_that_end_without_a_server_have_their_own_times(docker_rig: Rig) -> None:
    """One ends within its limit; the master of a gang fails, and its workers run on until a server ends them."""
    rig = docker_rig
    rig.submit(single("sleep 2", max_duration="4s", track=False))
    rig.submit(gang({"master": "sleep 2; exit 3"}))
    for name in ("1", "2"):
        rig.wait_state(name, "RUNNING")
    rig.kill()
    threading.Event().wait(AWAY)
    rig.start()
    views = [rig.wait_closed(name) for name in ("1", "2")]
    assert [view["state"] for view in views] == ["FINISHED", "FAILED"]
    rows = rig.get("/v1/results", of=["1", "2"])["experiments"]
    for row in rows:
        assert 1.9 <= row["seconds"] <= 2 + 2, f"{row['id']}: a gang starts one job after the other"
