"""The PyTorch example with real PyTorch on real digits: one process in each container, several, and without Docker."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.e2e.console import Console, Result
from tests.real.frameworks.test_toaster import EXAMPLE, find_cache

DIGITS = EXAMPLE.parent / "pytorch-digits"
IMAGE = ("--set", "train.image=riseml-test/pytorch:2.13.0")  # the tests' own, for CPUs alone
FAST = ("-p", "lr=0.01")  # learns in a few epochs
SCRIPT = "train_digits.py"
EPOCH = "    for epoch in range(first, args.epochs + 1):\n"
PAUSED = f"""{EPOCH}\
        if epoch == 3 and rank == 2 and os.environ["RISEML_ATTEMPT"] == "1":
            __import__("signal").pause()
"""


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory, engine_url: str) -> Iterator[Console]:
    data = find_cache() / "data"
    subprocess.run([sys.executable, EXAMPLE / "get_data.py", data / "digits"], check=True)
    console = Console(
        tmp_path_factory.mktemp("digits") / "home", engine_url, DIGITS, RISEML_DATA=str(data)
    ).fork_server()
    yield console
    console.close()


def check_accuracies(result: Result, *, ranks: int) -> None:
    """Every rank has learned, and has the same weights as the others."""
    found = dict(re.findall(r"rank (\d+ of \d+): test accuracy: ([0-9.]+)", result.out))
    assert set(found) == {f"{rank} of {ranks}" for rank in range(ranks)}
    assert len(set(found.values())) == 1
    assert min(map(float, found.values())) >= 0.85


def test_two_containers_with_two_processes_each(digits: Console) -> None:
    result = digits.run("train", "-f", "torchrun.yml", "-p", "epochs=2", *FAST, *IMAGE)
    assert (result.code, result.err) == (0, ""), result.out
    found = digits.ask("status", result.id)
    assert found["state"] == "FINISHED"
    assert {one["name"] for one in found["jobs"]} - {"build"} == {"master", "worker.1"}
    check_accuracies(result, ranks=4)
    assert digits.leftovers() == []


@pytest.fixture
def paused(tmp_path: Path) -> Path:
    """The example, whose last rank waits for its end after the second epoch of the first attempt."""
    project = tmp_path / "pytorch-digits"
    shutil.copytree(DIGITS, project)
    text = (project / SCRIPT).read_text()
    assert EPOCH in text
    (project / SCRIPT).write_text(text.replace(EPOCH, PAUSED))
    return project


def test_a_killed_rank_ends_the_attempt_and_the_next_goes_on_from_the_checkpoint(digits: Console, paused: Path) -> None:
    with digits.start("train", *IMAGE, "-p", "epochs=3", *FAST, where=paused) as running:
        running.wait_for(r"epoch 2: loss")
        api, server = digits.engine.api, digits.server_id()
        api.kill(digits.engine.find(server, "worker.2"), "SIGKILL")
        result = running.finish()
    assert result.code == 0, result.out
    check_accuracies(result, ranks=3)
    assert re.findall(r"3 processes, epoch (\d+) to 3", result.out) == ["1", "3"]
    attempts = {job["name"]: job["attempt"] for job in digits.ask("status", result.id)["jobs"]}
    assert attempts["master"] == attempts["worker.2"] == 2
    assert "Message: exit code 137 (SIGKILL)" in result.out, "the cause, not what it did to the others"


def test_digits_are_learned_without_docker(tmp_path: Path, engine_url: str, shared_environments: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "environments").symlink_to(shared_environments)
    data = str(find_cache() / "data")
    console = Console(home, engine_url, DIGITS, RISEML_DATA=data, RISEML_EXECUTOR="process").fork_server()
    try:
        result = console.run("train", "-p", "epochs=3", *FAST, "--set", "train.pytorch.version=2.13.0-cpu")
    finally:
        console.run("server", "stop")
        console.engine.close()
    assert (result.code, result.err) == (0, ""), result.out
    check_accuracies(result, ranks=3)
