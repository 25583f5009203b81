"""The use of jobs beside what they asked for, at every width."""

from __future__ import annotations

import re

import pytest

from riseml.cli.output.monitor_view import list_use
from riseml.cli.output.style import Style
from riseml.cli.output.widths import measure_width
from tests.unit.analysis.live_samples import watch


@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_a_live_monitor_fits_and_has_the_content_of_a_pipe(width: int, *, colour: bool) -> None:
    jobs = {f"4.{job}": {"lines": 10.0 if job != "worker.2" else 3.0} for job in ("master", "worker.1", "worker.2")}
    samples, trends = watch(jobs)
    painted = list_use(samples, Style(colour, width), trends, sparks=True)
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in painted]
    assert all(measure_width(line) <= width for line in lines)
    assert any("▁" in line or "█" in line for line in lines)
    text = " ".join(" ".join(lines).split())
    piped = list_use(samples, Style(), trends)
    cells = {cell.strip() for line in piped[1:4] for cell in re.split(" {2,}", line)}
    assert {cell for cell in cells if cell not in text} == set()
    assert piped[-1] in text
    assert "4.worker.2 !" in text
