"""Fault points: off without an order, exact with one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from riseml.base import faultpoints
from riseml.base.errors import UsageError
from tests.support.waiting import DEADLINE

SCRIPT = """
from riseml.base.faultpoints import Point, reach
for count in range(1, 6):
    reach(Point.SAVED)
    reach(Point.STARTED)
    print(count, flush=True)
"""


@pytest.mark.parametrize(
    ("order", "reached"), [("", 5), ("P4", 0), ("P4:1", 0), ("P4:3", 2), ("saved:2", 1), ("P3", 5), ("P4:6", 5)]
)
def test_the_process_dies_at_the_ordered_fault_point(order: str, reached: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, faultpoints.VARIABLE: order},
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
    )
    assert done.stdout.split() == [str(count) for count in range(1, reached + 1)]
    assert done.returncode == (0 if reached == 5 else -signal.SIGKILL)


def test_fault_points_are_off_without_an_order() -> None:
    assert faultpoints.arm(None) is faultpoints.arm("")


@pytest.mark.parametrize("order", ["P99", "P4:", "P4:0", "P4:x", ":2", "P4:-1", "P4:1:STOPS", "P4:STOP", "P4:1:HALT"])
def test_a_bad_order_is_a_usage_error(order: str) -> None:
    if order == "P4:":
        assert faultpoints.arm(order) is not faultpoints.arm(None), "an empty count is the first time"
        return
    with pytest.raises(UsageError) as error:
        faultpoints.arm(order)
    assert repr(order) in error.value.message
    assert "P30" in str(error.value.hint)
