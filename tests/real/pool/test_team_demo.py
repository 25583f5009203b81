"""`make demo-team`: a team on two engines, as whoever watches it sees it."""

from __future__ import annotations

import io
import re
import tempfile
from pathlib import Path

from scripts.stage import Stage
from scripts.team_demo import ENCODED, SECRET, run_demo
from tests.real.pool.engines import EngineHost
from tests.support.waiting import DEADLINE

# three jobs for each member instead of four; a training goes on until the quota that it uses was seen
SHORT = "-p epochs=3 --set train.tensorflow.distributed.worker=2"


def test_a_team_trains_on_two_machines(engines: tuple[EngineHost, ...], engine_url: str) -> None:
    output = io.StringIO()
    code = run_demo(engines[:2], engine_url, Stage(output, DEADLINE), SHORT)
    shown = output.getvalue()
    assert code == 0, shown
    typed = re.findall(r"^(\w+)\$ (.*)$", shown, re.MULTILINE)
    assert {name for name, _ in typed} == {"alice", "paul", "ann", "vera"}
    assert {("paul", f"cd ai-toaster && riseml train -d {SHORT}"), ("vera", "cd ai-toaster && riseml train")} <= {
        *typed
    }
    assert "paul runs 1 of 1 experiments" in shown
    assert "the token is ***" in shown
    assert SECRET not in shown
    assert ENCODED not in shown


def test_a_demo_that_goes_otherwise_ends_with_1_and_leaves_nothing(engine_url: str) -> None:
    before = {*Path(tempfile.gettempdir()).glob("riseml-team-*/server/server.yml")}
    output = io.StringIO()
    assert run_demo((), engine_url, Stage(output, DEADLINE), SHORT) == 1
    assert output.getvalue().endswith("demo-team: `riseml server start` of alice ended with 5, not with 0\n")
    assert {*Path(tempfile.gettempdir()).glob("riseml-team-*/server/server.yml")} <= before
