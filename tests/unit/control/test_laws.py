"""The laws of the loop over random histories: 10,000 and a hundred in `make test`, 20 in `make unit`, and some more
with the real store behind the loop. `make soak` goes on with other seeds.

The loop is pure and the histories are the same on every Python, so that one Python runs all of them.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests.unit.control.cluster_history import ClusterHistory
from tests.unit.control.histories import run
from tests.unit.control.stored import stored_history
from tests.unit.control.team_history import TeamHistory

ROOT = Path(__file__).parents[3]
EACH = 5000
STORED = 100
CLUSTERS = 500
TEAMS = 1000
FEW_STORED = 5
HISTORIES = (
    str(ROOT / "scripts" / "background"),
    "10",  # a tenth of what a test gets: other tests have the processors first, and a busy machine stops no law
    sys.executable,
    "-m",
    "tests.unit.control.histories",
    "--count",
    str(EACH),
    "--stored",
    str(STORED),
    "--clusters",
    str(CLUSTERS),
    "--teams",
    str(TEAMS),
)
DEADLINE = 3600  # seconds; other tests have the processors first


@pytest.mark.long
@pytest.mark.timeout(DEADLINE + 60)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_laws_hold_in_five_thousand_histories(seed: int) -> None:
    command = [*HISTORIES, "--seed", str(seed)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=DEADLINE)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]


def test_the_laws_hold_in_as_many_histories_as_a_property_has_examples() -> None:
    few = settings().max_examples
    run(few, 1)
    run(few, 1, machine=ClusterHistory)
    run(few, 1, machine=TeamHistory)
    with stored_history() as machine:
        run(FEW_STORED, 1, machine=machine)
