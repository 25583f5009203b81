"""Fault points: a server refuses a bad order, and the table of chaos has every point."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from riseml.base import faultpoints
from riseml.base.errors import UsageError
from riseml.base.faultpoints import Point
from tests.chaos.capsules import CAPSULE_POINTS
from tests.chaos.crashes import AROUND, SENTENCES
from tests.chaos.data_copies import COPY_POINTS
from tests.chaos.disks import DISCARD_POINTS
from tests.chaos.report_crashes import AROUND_COUNTS
from tests.chaos.searches import POPULATION_POINTS, SEARCH_POINTS
from tests.chaos.stores import FETCH_POINTS, RESTORE_POINTS, SAVE_POINTS
from tests.support.waiting import DEADLINE


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
    stores = {*POPULATION_POINTS, *FETCH_POINTS, *SAVE_POINTS, *RESTORE_POINTS, *COPY_POINTS}
    points = {*SENTENCES, *AROUND, *AROUND_COUNTS, *SEARCH_POINTS, *CAPSULE_POINTS, *DISCARD_POINTS, *stores}
    assert points == set(Point)
