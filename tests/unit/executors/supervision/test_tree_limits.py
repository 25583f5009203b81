"""What a tree of processes may take, and how often its supervisor looks."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from riseml.executors.supervision.process_tree import list_descendants, send_signal
from riseml.executors.supervision.tree_limits import SHORTEST_INTERVAL, TreeLimits, measure_process

MIB = 1 << 20


@pytest.fixture
def root() -> Iterator[int]:
    """The pid of a process with two children."""
    with subprocess.Popen(["/bin/sh", "-c", "sleep 600 & sleep 601 & echo; wait"], stdout=subprocess.PIPE) as shell:
        assert shell.stdout is not None
        shell.stdout.readline()
        yield shell.pid
        for pid in list_descendants(shell.pid):
            send_signal(pid, signal.SIGKILL)


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.mark.parametrize(
    ("limits", "excess"),
    [
        ({}, ""),
        ({"processes": 2}, ""),
        ({"processes": 1}, "processes"),
        ({"memory": 1000 * MIB}, ""),
        ({"memory": 1}, "memory"),
        ({"memory": 1, "processes": 1}, "processes"),
    ],
)
def test_a_tree_that_exceeds_a_limit_is_noticed(root: int, limits: dict[str, float], excess: str) -> None:
    assert TreeLimits(limits).find_excess(root) == excess


def test_a_build_ends_when_its_time_is_over_and_looks_are_not_too_frequent(root: int) -> None:
    clock = Clock()
    limits = TreeLimits({"seconds": 10.0, "processes": 1}, clock)
    assert limits.find_excess(root) == "processes"
    assert limits.interval == pytest.approx(1000 * SHORTEST_INTERVAL)
    clock.seconds += SHORTEST_INTERVAL / 2
    assert limits.find_excess(root) == "", "it is too soon"
    clock.seconds += 10.0
    assert limits.find_excess(root) == "seconds"


def test_a_process_that_has_ended_takes_nothing() -> None:
    threads, memory = measure_process(os.getpid())
    assert threads >= 1
    assert memory > MIB
    assert measure_process(2**22 + 1) == (0, 0)
