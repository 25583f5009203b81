"""How fast this machine is, compared with the machine on which the bars in seconds were set.

A bar in seconds says little on another machine. So when such a bar falls short on a slower machine, it is judged a
second time, with the figure divided by the pace: how many times longer Python alone takes to start. This is an
estimate, because a slower machine does not slow down everything by the same factor.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable, Iterator

from benchmarks.common import Bar, TimeBar, bar_at_most, median
from benchmarks.machine import make_environ

START_OF_THE_BARS = 0.0095  # seconds of `python -c pass` on the machine where the bars were set
_STARTS = 20


def measure_start() -> float:
    """Return the seconds that `python -c pass` takes, the median of 20 starts."""
    return median([start_python() for _ in range(_STARTS)])


def start_python() -> float:
    """Return the seconds that one `python -c pass` takes."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], env=make_environ(), check=True)
    return time.perf_counter() - begun


def judge_at_pace(bars: Iterable[Bar], start: float) -> Iterator[Bar]:
    """Yield every bar. After a bar in seconds that falls short on a slower machine, yield it again at the pace.

    Args:
        bars: of one bench.
        start: seconds that `python -c pass` takes on this machine.
    """
    pace = start / START_OF_THE_BARS
    for bar in bars:
        yield bar
        if isinstance(bar, TimeBar) and bar.passed is False and pace > 1:
            requirement = f"{bar.requirement}: divided by this machine's pace, {pace:.2f}"
            yield bar_at_most(requirement, bar.value / pace, bar.limit, bar.unit, bar.cause)
