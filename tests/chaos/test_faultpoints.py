"""Fault points: off without an order, exact with one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from riseml.base import faultpoints
from riseml.base.errors import UsageError
from riseml.base.faultpoints import Point
from tests.chaos.capsules import CAPSULE_POINTS
from tests.chaos.crashes import AROUND, SENTENCES
from tests.chaos.data_copies import COPY_POINTS
from tests.chaos.disks import DISCARD_POINTS
from tests.chaos.report_crashes import AROUND_COUNTS
from tests.chaos.searches import SEARCH_POINTS
from tests.chaos.stores import FETCH_POINTS, RESTORE_POINTS, SAVE_POINTS
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


@pytest.mark.parametrize("order", ["P99", "P4:", "P4:0", "P4:x", ":2", "P4:-1"])
def test_a_bad_order_is_a_usage_error(order: str) -> None:
    if order == "P4:":
        assert faultpoints.arm(order) is not faultpoints.arm(None), "an empty count is the first time"
        return
    with pytest.raises(UsageError) as error:
        faultpoints.arm(order)
    assert repr(order) in error.value.message
    assert "P30" in str(error.value.hint)


def test_a_server_with_a_bad_order_reports_it_in_one_sentence(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "riseml.server"],
        env={**os.environ, faultpoints.VARIABLE: "P99", "RISEML_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
    )
    assert done.returncode == UsageError.exit_code
    assert done.stderr.startswith("error: RISEML_FAULT is 'P99'; it is one of P0, ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "home").exists()


def test_every_fault_point_is_in_the_table() -> None:
    stores = {*FETCH_POINTS, *SAVE_POINTS, *RESTORE_POINTS, *COPY_POINTS}
    points = {*SENTENCES, *AROUND, *AROUND_COUNTS, *SEARCH_POINTS, *CAPSULE_POINTS, *DISCARD_POINTS, *stores}
    assert points == set(Point)
