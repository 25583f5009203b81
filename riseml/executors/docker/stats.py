"""The engine's statistics as samples.

The CPU percentage is the CPU time of the container over the wall time between two readings, in percent of one core.
Memory in use leaves out the page cache that the kernel could give back, as `docker stats` does (`inactive_file`, or
`total_inactive_file` with cgroup v1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from riseml.executors.timestamps import to_datetime, to_nanoseconds
from riseml.model import Sample


def parse_samples(rows: Iterable[dict[str, Any]]) -> Iterator[Sample]:
    """Yield a sample for every reading after the first, from the answer of `GET /containers/{id}/stats`."""
    previous: tuple[int, int] | None = None  # when, and CPU time until then; nanoseconds
    for row in rows:
        memory = row.get("memory_stats") or {}
        if not memory.get("usage"):
            continue  # the container has ended, or has not started
        now = to_nanoseconds(row["read"])
        used = int(row["cpu_stats"]["cpu_usage"]["total_usage"])
        if previous is not None and now > previous[0]:
            cpu = (used - previous[1]) / (now - previous[0]) * 100
            yield Sample(to_datetime(now), max(0.0, cpu), _memory_in_use(memory), int(memory["limit"]))
        previous = (now, used)


def _memory_in_use(memory: dict[str, Any]) -> int:
    details = memory.get("stats") or {}
    cache = details.get("total_inactive_file", details.get("inactive_file", 0))
    return max(0, int(memory["usage"]) - int(cache))
