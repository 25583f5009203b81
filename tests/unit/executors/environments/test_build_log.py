"""The log of a build: bounded in memory, and as servers that follow each other show it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from riseml.executors.environments.build_log import BuildLog
from riseml.executors.slurm.job_queue import QueueAnswer
from riseml.executors.slurm.node_environments import _BuildFollower
from riseml.executors.slurm.queue_rows import parse_queue
from riseml.model import Image, NodeKind
from tests.support.builds import make_build_request, make_environment_request

ANSWER = QueueAnswer(tuple(parse_queue("7|RUNNING|None|N/A|name\n")), (NodeKind(1, 1, 1, 0),), 1.0)
LOG = ["--> pip install x", "same", "same", "\x1b[32mgreen\x1b[0m", "", "last"]
SHOWN = ["--> pip install x", "same", "same", "green", "last"]
BEGIN = ["Slurm job 6 makes it on a node", "same", "Slurm job 7 makes it on a node"]


@pytest.mark.parametrize("told", range(len(SHOWN) + 1))
def test_each_line_is_shown_once_whatever_the_server_before_has_told(told: int, tmp_path: Path) -> None:
    place = tmp_path / "environment.build"
    place.mkdir()
    (place / "log").write_text("".join(f"{line}\n" for line in LOG))
    (place / "end.json").write_text(json.dumps({"error": ""}))
    shown = [*BEGIN, *SHOWN[:told]]
    order = make_environment_request(place.with_suffix(""), Image("x"), shown)
    follower = _BuildFollower(order, "name", "7")
    shown.append("Slurm job 7 makes it already")
    follower.follow(lambda: ANSWER)
    assert [line for line in shown if not line.startswith("Slurm job")][1:] == SHOWN
    _BuildFollower(order, "name", "7").follow(lambda: ANSWER)  # of a third server
    assert [line for line in shown if not line.startswith("Slurm job")][1:] == SHOWN


LINE = 1 << 16  # what is kept of a line without an end


def test_a_step_that_prints_without_line_end_takes_bounded_memory() -> None:
    lines: list[str] = []
    log = BuildLog(make_build_request(Image("python"), lines), 0)
    for piece in [*[b"x" * 1000] * 300, b"end\nnext\n"]:
        log.add_output(piece)
    assert lines == ["x" * LINE + "end", "next"]
