"""The Horovod example with real Horovod on real digits: a rank is killed, and the next attempt learns on."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.e2e.console import Console
from tests.real.e2e.test_toaster import EXAMPLE, find_cache

DIGITS = EXAMPLE.parent / "horovod-digits"
KILL_RANK_3 = """
for folder in /proc/[0-9]*; do
  if tr '\\0' '\\n' <$folder/environ | grep -qx HOROVOD_RANK=3; then kill -9 ${folder#/proc/}; fi
done
"""


@pytest.fixture
def digits(tmp_path: Path, engine_url: str) -> Iterator[Console]:
    data = find_cache() / "data"
    subprocess.run([sys.executable, EXAMPLE / "get_data.py", data / "digits"], check=True)
    console = Console(tmp_path / "home", engine_url, DIGITS, RISEML_DATA=str(data))
    yield console
    console.close()


def test_a_killed_rank_is_the_cause_and_the_next_attempt_learns_on(digits: Console, horovod_image: str) -> None:
    """Two containers with two processes each, as the example's file says."""
    with digits.start("train", "--set", f"train.image={horovod_image}", "-p", "epochs=40") as running:
        running.wait_for(r"epoch 2: loss")
        api, second = digits.engine.api, digits.engine.find(digits.server_id(), "worker.2")
        api.exec_start(api.exec_create(second, ["sh", "-c", KILL_RANK_3], user="root")["Id"])
        result = running.finish()
    assert (result.code, result.err) == (0, ""), result.out
    assert "riseml: rank 3 ended with exit code 137" in result.lines("worker.2")
    assert "Message: exit code 137" in result.out
    assert not re.search(r"worker\.1 .*--> FAILED", result.out), "what follows from the cause is not named as one"
    starts = re.findall(r"\[0\] 4 processes, epoch (\d+) to 40", result.out)
    assert starts[0] == "1"
    assert int(starts[1]) > 1
    accuracies = dict(re.findall(r"\[\d\] rank (\d of 4): test accuracy: ([0-9.]+)", result.out))
    assert set(accuracies) == {f"{rank} of 4" for rank in range(4)}
    assert len(set(accuracies.values())) == 1, "all have the same weights"
    assert min(map(float, accuracies.values())) >= 0.85
    assert digits.leftovers() == []
