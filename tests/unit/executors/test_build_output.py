"""What the server keeps of the output of a build."""

from __future__ import annotations

import os
from pathlib import Path

from riseml.executors.base import BuildOrder, Cancellation
from riseml.executors.docker.images import _read_build
from riseml.executors.environments.build_step import BuildStep, run_build_step
from riseml.model import Image

LINE = 1 << 16  # what is kept of a line without an end
ENDLESS = "head -c 300000 /dev/zero | tr '\\0' x; echo end; echo next"


def test_a_step_that_prints_without_line_end_takes_bounded_memory(tmp_path: Path) -> None:
    lines: list[str] = []
    lock = os.open(os.devnull, os.O_RDONLY)
    step = BuildStep(["/bin/sh", "-c", ENDLESS], tmp_path, {"PATH": os.defpath}, lock)
    assert run_build_step(step, BuildOrder(Image("python"), None, lines.append, Cancellation())) == 0
    os.close(lock)
    assert lines[0].endswith("xend")
    assert len(lines[0]) <= 2 * LINE + len("end")
    assert lines[1:] == ["next"]


def test_a_build_of_an_engine_that_prints_without_line_end_takes_bounded_memory() -> None:
    lines: list[str] = []
    answer = [{"stream": "x" * 1000}] * 300 + [{"stream": "end\nnext\n"}]
    _read_build(iter(answer), BuildOrder(Image("python"), None, lines.append, Cancellation()))
    assert lines == ["x" * LINE + "end", "next"]
