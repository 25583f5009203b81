"""The most that a tree of processes may take, measured from time to time by its supervisor.

A process that allocates fast exceeds the memory until the next look: it also has the OOM score of a job, so that the
kernel ends it before others. Standard library and `process_tree` only.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

from riseml.executors.supervision import process_tree

SHORTEST_INTERVAL = 0.2
"""Seconds between two looks; more where a look takes long, so that looking takes a twentieth of a core at most."""

_COST = 20  # an interval is at least this many times the time of the last look
_THREADS = 17  # field of stat, counted after the name (proc(5))
_SHARED = 2  # field of statm
_RESIDENT = 1  # field of statm


class TreeLimits:
    """Watches the tree below one process.

    Args:
        limits: `memory` (bytes that its processes have for themselves), `processes` (with threads) and `seconds` (from
            now on); a missing one is not a limit.
        clock: seconds.
    """

    def __init__(self, limits: Mapping[str, float], clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._begun = self._next = clock()

    @property
    def interval(self) -> float:
        """Milliseconds until the next look."""
        return max(1.0, 1000 * (self._next - self._clock()))

    def find_excess(self, root: int) -> str:
        """Return what the tree has exceeded, `memory`, `processes` or `seconds`; empty: nothing, or it is too soon for
        another look."""
        now = self._clock()
        if now < self._next:
            return ""
        excess = self._look(root, now - self._begun)
        self._next = self._clock() + max(SHORTEST_INTERVAL, _COST * (self._clock() - now))
        return excess

    def _look(self, root: int, age: float) -> str:
        if age > self._limits.get("seconds", age):
            return "seconds"
        used = [measure_process(pid) for pid in process_tree.list_descendants(root)]
        if sum(threads for threads, _ in used) > self._limits.get("processes", float("inf")):
            return "processes"
        if sum(memory for _, memory in used) > self._limits.get("memory", float("inf")):
            return "memory"
        return ""


def measure_process(pid: int) -> tuple[int, int]:
    """Return how many threads a process has, and the bytes that it alone has in memory; zeros when it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            threads = int(file.read().rpartition(b")")[2].split()[_THREADS])
        with open(f"/proc/{pid}/statm", "rb") as file:
            pages = file.read().split()
    except (OSError, IndexError):
        return 0, 0
    own = max(0, int(pages[_RESIDENT]) - int(pages[_SHARED]))
    return threads, own * os.sysconf("SC_PAGE_SIZE")
