"""The engine's statistics as samples.

The CPU percentage is the container's CPU time over the wall time between two readings, in percent of one core; memory
in use leaves out the page cache that could be given back, as `docker stats` does (`inactive_file`, or
`total_inactive_file` with cgroup v1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from riseml.executors.timestamps import to_datetime, to_nanoseconds
from riseml.model import Sample


def read(rows: Iterable[dict[str, Any]]) -> Iterator[Sample]:
    """A sample for every reading after the first."""
    previous: tuple[int, int] | None = None
    for row in rows:
        memory = row.get("memory_stats") or {}
        if not memory.get("usage"):
            continue  # it ended, or has not begun
        now = to_nanoseconds(row["read"])
        used = int(row["cpu_stats"]["cpu_usage"]["total_usage"])
        if previous is not None and now > previous[0]:
            cpu = (used - previous[1]) / (now - previous[0]) * 100  # nanoseconds both
            yield Sample(to_datetime(now), max(0.0, cpu), _in_use(memory), int(memory["limit"]))
        previous = (now, used)


def _in_use(memory: dict[str, Any]) -> int:
    details = memory.get("stats") or {}
    cache = details.get("total_inactive_file", details.get("inactive_file", 0))
    return max(0, int(memory["usage"]) - int(cache))
