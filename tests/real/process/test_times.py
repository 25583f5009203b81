"""The time of an experiment is what its job itself measures, whatever the server did meanwhile."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.rig import Rig, single
from tests.support.waiting import DEADLINE

AWAY = 4.0  # seconds without a server
NAMES = ("1", "2", "3", "4")


def make_run(seconds: float, code: int = 0) -> list[str]:
    """Return lines that measure the time of their job by a monotonic clock."""
    uptime = 'cat /proc/uptime > "$OUTPUT_DIR/{}"'
    return [uptime.format("began"), f"sleep {seconds}", uptime.format("ended"), f"exit {code}"]


def read_own_time(output: str) -> float:
    """Return the seconds that a job has measured itself."""
    began, ended = (float((Path(output) / name).read_text().split()[0]) for name in ("began", "ended"))
    return ended - began


def read_time(rig: Rig, name: str) -> float:
    """Return the TIME of an experiment that `riseml results` prints."""
    (found,) = rig.get("/v1/results", of=name)["experiments"]
    return float(found["seconds"])


def kill_server(rig: Rig) -> Callable[[], None]:
    rig.kill()
    return rig.start


def hold_server(rig: Rig) -> Callable[[], None]:
    os.kill(rig.server_pid(), signal.SIGSTOP)
    return lambda: os.kill(rig.server_pid(), signal.SIGCONT)


@pytest.mark.parametrize("remove", [kill_server, hold_server], ids=["killed", "stands still"])
def test_jobs_that_end_without_a_server_have_their_own_times(
    tmp_path: Path, remove: Callable[[Rig], Callable[[], None]]
) -> None:
    """They end in time, fail, lose their supervisor, and run on past their limit."""
    with Rig(tmp_path / "home", None) as rig:
        submitted = time.monotonic()
        rig.submit(single(make_run(1.5), max_duration="3s"))
        rig.submit(single(make_run(1.0, code=3), retry={"max": 1, "on": ["exit-codes"]}))
        rig.submit(single(f"echo begun; sleep {DEADLINE}"))
        rig.submit(single(f"sleep {DEADLINE}", max_duration="2s"))
        for name in NAMES:
            rig.wait_state(name, "RUNNING")
        state = json.loads((rig.home / "processes" / "3" / "train-a1" / "state.json").read_text())
        bring_back = remove(rig)
        os.kill(state["pid"], signal.SIGKILL)
        gone = time.monotonic()
        threading.Event().wait(AWAY)
        bring_back()
        views = {name: rig.wait_closed(name) for name in NAMES}
        assert [view["state"] for view in views.values()] == ["FINISHED", "FAILED", "FAILED", "FAILED"]
        assert views["4"]["reason"] == "MAX_DURATION"
        assert abs(read_time(rig, "1") - read_own_time(views["1"]["output"])) < 1
        assert abs(read_time(rig, "2") - 2 * read_own_time(views["2"]["output"])) < 1, "without the wait between them"
        assert read_time(rig, "3") < gone - submitted + 1, "it was last known to run before the server went"
        assert read_time(rig, "4") >= AWAY, "it ran on until it was ended"
