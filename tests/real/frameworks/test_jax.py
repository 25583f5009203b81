"""The JAX example with real JAX on real digits: a rank fails, the next attempt learns on; and without Docker."""

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

DIGITS = EXAMPLE.parent / "jax-digits"
SCRIPT = "train_digits_jax.py"
IMAGE = ("--set", "train.image=riseml-test/jax:0.10.2")  # the tests' own, for CPUs alone
PAIR = ("--set", "train.jax.distributed.worker=2", "--set", "train.retry=2")
BROKEN = """\
            print(f"epoch {epoch}: loss {loss:.4f}")
        if rank == 1 and epoch == 3 and os.environ["RISEML_ATTEMPT"] == "1":
            raise RuntimeError("rank 1 is broken")
        if rank == 1 and epoch == 5 and os.environ["RISEML_ATTEMPT"] == "2":
            __import__("sys").exit(9)
"""


def provide_data() -> Path:
    """The data folder, with the digits in it."""
    data = find_cache() / "data"
    subprocess.run([sys.executable, EXAMPLE / "get_data.py", data / "digits"], check=True)
    return data


@pytest.fixture
def digits(tmp_path: Path, engine_url: str) -> Iterator[Console]:
    """The example, whose second rank raises an exception in the first attempt, and ends with 9 in the second one."""
    data = provide_data()
    project = tmp_path / "jax-digits"
    shutil.copytree(DIGITS, project)
    text = (project / SCRIPT).read_text()
    (project / SCRIPT).write_text(text.replace(BROKEN.splitlines(keepends=True)[0], BROKEN))
    console = Console(tmp_path / "home", engine_url, project, RISEML_DATA=str(data)).fork_server()
    yield console
    console.close()


def test_an_exception_or_an_exit_ends_the_attempt_at_once_and_the_next_one_learns_on(digits: Console) -> None:
    result = digits.run("train", "-p", "epochs=6", *IMAGE, *PAIR)
    assert (result.code, result.err) == (0, ""), result.out
    assert any("RuntimeError: rank 1 is broken" in line for line in result.lines("worker.1"))
    # Both ranks end within milliseconds, so that the server may see that of the other one first, and end the attempt.
    causes = re.findall(r"^1 +\| +Reason: RETRY\n1 +\| +Message: exit code (\d+)$", result.out, re.MULTILINE)
    assert (causes[0], causes[1] in ("1", "9"), len(causes)) == ("1", True, 2), result.out
    second, third = map(int, re.findall(r"2 processes, 2 devices, epoch (\d+) to 6", result.out)[1:])
    assert 1 < second <= 4, "from a checkpoint of the first attempt"
    assert second < third <= 6
    accuracies = dict(re.findall(r"rank (\d of 2): test accuracy: ([0-9.]+)", result.out))
    assert set(accuracies) == {"0 of 2", "1 of 2"}
    assert len(set(accuracies.values())) == 1, "both have the same weights"
    assert min(map(float, accuracies.values())) >= 0.85
    waited = digits.ask("status", result.id)
    assert {job["name"]: job["attempt"] for job in waited["jobs"]}["worker.1"] == 3
    assert digits.leftovers() == []


def test_two_processes_of_one_job_learn_without_docker(tmp_path: Path, engine_url: str) -> None:
    """With the JAX that riseml installs. Its processes compile what they import: pip would take three times as long for
    all of it.
    """
    settings = {"RISEML_DATA": str(provide_data()), "RISEML_EXECUTOR": "process", "PIP_COMPILE": "0"}
    console = Console(tmp_path / "home", engine_url, DIGITS, **settings).fork_server()
    two = ("--set", "train.jax.distributed.worker=1", "--set", "train.jax.distributed.processes=2")
    try:
        result = console.run("train", "-p", "epochs=4", *two)
    finally:
        console.run("server", "stop")
        console.engine.close()
    assert (result.code, result.err) == (0, ""), result.out
    accuracies = dict(re.findall(r"\[\d\] rank (\d of 2): test accuracy: ([0-9.]+)", result.out))
    assert set(accuracies) == {"0 of 2", "1 of 2"}
    assert len(set(accuracies.values())) == 1
    assert min(map(float, accuracies.values())) >= 0.85
