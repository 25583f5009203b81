"""The Horovod example with real Horovod on real digits: a rank is killed, and the next attempt learns on."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.e2e.console import Console
from tests.real.frameworks.test_toaster import EXAMPLE, find_cache

DIGITS = EXAMPLE.parent / "horovod-digits"
SCRIPT = "train_digits_hvd.py"
FIT = "    batch = max(1, BATCH // size)\n"
KILLED = """\
    if rank == 3 and os.environ["RISEML_ATTEMPT"] == "1":
        killed = lambda epoch, logs: os.kill(os.getpid(), 9) if epoch == 1 else None
        callbacks.append(tf.keras.callbacks.LambdaCallback(on_epoch_end=killed))
"""


@pytest.fixture
def data(engine_url: str) -> Path:
    found = find_cache() / "data"
    subprocess.run([sys.executable, EXAMPLE / "get_data.py", found / "digits"], check=True)
    return found


@pytest.fixture
def digits(tmp_path: Path, engine_url: str, data: Path) -> Iterator[Console]:
    """The example, whose last rank is killed after the second epoch of the first attempt."""
    project = tmp_path / "horovod-digits"
    shutil.copytree(DIGITS, project)
    text = (project / SCRIPT).read_text()
    assert FIT in text
    (project / SCRIPT).write_text(text.replace(FIT, KILLED + FIT))
    console = Console(tmp_path / "home", engine_url, project, RISEML_DATA=str(data)).fork_server()
    yield console
    console.close()


def test_a_killed_rank_is_the_cause_and_the_next_attempt_learns_on(digits: Console, horovod_image: str) -> None:
    """Two containers with two processes each, as the example's file says."""
    result = digits.run("train", "--set", f"train.image={horovod_image}", "-p", "epochs=3", "-p", "lr=0.006")
    assert (result.code, result.err) == (0, ""), result.out
    assert "riseml: rank 3 ended with exit code 137" in result.lines("worker.2")
    assert "Message: exit code 137" in result.out
    assert not re.search(r"worker\.1 .*--> FAILED", result.out), "what follows from the cause is not named as one"
    first, second = map(int, re.findall(r"\[0\] 4 processes, epoch (\d+) to 3", result.out))
    assert (first, second > 1) == (1, True)
    accuracies = dict(re.findall(r"\[\d\] rank (\d of 4): test accuracy: ([0-9.]+)", result.out))
    assert set(accuracies) == {f"{rank} of 4" for rank in range(4)}
    assert len(set(accuracies.values())) == 1, "all have the same weights"
    assert min(map(float, accuracies.values())) >= 0.85
    assert digits.leftovers() == []


def test_pytorch_learns_with_horovod(tmp_path: Path, engine_url: str, data: Path, horovod_pytorch_image: str) -> None:
    """Two containers with one process each: Horovod averages the gradients of PyTorch.

    Four processes would wait for each other in a loop of `sched_yield`: on two cores that takes minutes of processor
    time, in which the engine answers no other test. tests/real/pool/slow_horovod.py has four.
    """
    console = Console(tmp_path / "home", engine_url, DIGITS, RISEML_DATA=str(data)).fork_server()
    try:
        changes = (f"image={horovod_pytorch_image}", "pytorch.horovod.workers.processes=1")
        options = [word for change in changes for word in ("--set", f"train.{change}")]
        result = console.run("train", "-f", "pytorch.yml", *options, "-p", "epochs=2", "-p", "lr=0.01")
        assert (result.code, result.err) == (0, ""), result.out
        assert "2 processes, epoch 1 to 2" in result.out
        accuracies = dict(re.findall(r"rank (\d of 2): test accuracy: ([0-9.]+)", result.out))
        assert set(accuracies) == {"0 of 2", "1 of 2"}
        assert len(set(accuracies.values())) == 1, "all have the same weights"
        assert min(map(float, accuracies.values())) >= 0.85
        assert console.leftovers() == []
    finally:
        console.close()
