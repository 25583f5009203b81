"""What the server keeps of the output of a build."""

from __future__ import annotations

from riseml.executors.environments.build_log import BuildLog
from riseml.model import Image
from tests.support.builds import make_build_order

LINE = 1 << 16  # what is kept of a line without an end


def test_a_step_that_prints_without_line_end_takes_bounded_memory() -> None:
    lines: list[str] = []
    log = BuildLog(make_build_order(Image("python"), lines), 0)
    for piece in [*[b"x" * 1000] * 300, b"end\nnext\n"]:
        log.add_output(piece)
    assert lines == ["x" * LINE + "end", "next"]
