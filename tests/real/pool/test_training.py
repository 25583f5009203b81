"""Training over several hosts, across the overlay network, on real digits: parameter servers, PyTorch, roles."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.parse
from pathlib import Path

import docker
import pytest

from tests.real.frameworks.test_toaster import EXAMPLE, find_cache
from tests.real.pool.conftest import PoolRig
from tests.real.streams.conftest import Hands
from tests.real.streams.test_tensorboard import open_forward, read_json
from tests.support import command
from tests.support.rig import BASE
from tests.support.waiting import DEADLINE
from tests.support.wheels import fetch_wheels

TENSORFLOW = "tensorflow/tensorflow:2.21.0"
PYTORCH = "riseml-test/pytorch:2.13.0"
JAX = "riseml-test/jax:0.10.2"
HOROVOD = "riseml-test/horovod:0.28.1"


def test_digits_are_learned_over_three_hosts(pool_rig: PoolRig, engine_url: str, tmp_path: Path) -> None:
    pool_rig.post("/v1/pool/join")
    provide_data(pool_rig)
    provide_image(pool_rig.hosts[0].api, engine_url, TENSORFLOW)
    changes = ("--set", "train.tensorflow.distributed.ps=2", "--set", "train.resources.cpus=1")
    project = copy_with_wheels(EXAMPLE, tmp_path / "ai-toaster")
    said = run_riseml(pool_rig, project, "train", *changes, "-p", "epochs=3")
    jobs = read_hosts(pool_rig)
    assert set(jobs) == {"master", "worker.1", "worker.2", "ps.1", "ps.2"}
    assert set(jobs.values()) == {"h1", "h2", "h3"}
    (accuracy,) = re.findall(r"^master +\| .*test accuracy: ([0-9.]+)", said, re.MULTILINE)
    assert float(accuracy) >= 0.85
    pool_rig.wait_closed("1")
    with open_forward(Hands(pool_rig), "1") as (_, _, address):
        (run,) = pool_rig.wait("TensorBoard has read the run", lambda: read_json(address, "plugin/scalars/tags"))
        assert re.fullmatch(r"1 (.* )?epochs=3( .*)?/summaries", run)
        query = urllib.parse.urlencode({"run": run, "tag": "loss"})
        losses = read_json(address, f"plugin/scalars/scalars?{query}")
        assert [step for _, step, _ in losses] == [1, 2, 3]
        assert losses[0][2] > losses[-1][2]
        pool_rig.post("/v1/experiments/2/kill")
    pool_rig.wait_closed("2")
    pool_rig.check_nothing_left()


@pytest.mark.parametrize(
    ("example", "image", "cpus", "rate", "jobs", "size"),
    [
        ("pytorch-digits", PYTORCH, 1, 0.01, {"master", "worker.1", "worker.2"}, 3),
        ("jax-digits", JAX, 1, 0.006, {"master", "worker.1", "worker.2"}, 3),
        ("horovod-digits", HOROVOD, 2, 0.006, {"worker.1", "worker.2"}, 2),
    ],
)
def test_a_group_spans_two_hosts(  # noqa: PLR0913  # one parameter for each column
    pool_rig: PoolRig,
    engine_url: str,
    example: str,
    image: str,
    cpus: int,
    rate: float,
    jobs: set[str],
    size: int,
    request: pytest.FixtureRequest,
) -> None:
    if image == HOROVOD:
        request.getfixturevalue("horovod_image")
    pool_rig.post("/v1/pool/join")
    provide_data(pool_rig)
    provide_image(pool_rig.hosts[0].api, engine_url, image)
    changes = ["--set", f"train.image={image}", "--set", f"train.resources.cpus={cpus}"]
    if image == HOROVOD:  # tests/real/frameworks has two processes in each container
        changes += ["--set", "train.tensorflow.horovod.workers.processes=1"]
    said = run_riseml(pool_rig, EXAMPLE.parent / example, "train", *changes, "-p", "epochs=3", "-p", f"lr={rate}")
    hosts = read_hosts(pool_rig)
    assert set(hosts) == jobs
    assert len(set(hosts.values())) == 2
    accuracies = re.findall(rf"rank \d of {size}: test accuracy: ([0-9.]+)", said)
    assert len(accuracies) == size
    assert len(set(accuracies)) == 1, "every process has the same weights"
    assert float(accuracies[0]) >= 0.85
    pool_rig.wait_closed("1")
    pool_rig.check_nothing_left()


def test_a_gang_of_roles_spans_two_hosts(pool_rig: PoolRig, engine_url: str) -> None:
    pool_rig.post("/v1/pool/join")
    provide_data(pool_rig)
    provide_image(pool_rig.hosts[0].api, engine_url, BASE)
    changes = ("--set", f"train.image={BASE}", "--set", "train.resources.cpus=1")
    said = run_riseml(pool_rig, EXAMPLE.parent / "roles-digits", "train", *changes)
    jobs = read_hosts(pool_rig)
    assert set(jobs) == {"learner", "arena", "actor.1", "actor.2"}
    assert len(set(jobs.values())) == 2
    (accuracy,) = re.findall(r"test accuracy: ([0-9.]+)", said)
    assert float(accuracy) >= 0.75
    assert len(re.findall(r"waiting until (?:learner|arena) answers at (?:learner|arena):2222", said)) == 4
    pool_rig.wait_closed("1")
    pool_rig.check_nothing_left()


def copy_with_wheels(example: Path, project: Path) -> Path:
    """Copy an example together with the packages that it requires: the engines of these tests reach no index."""
    shutil.copytree(example, project)
    required = project / "requirements.txt"
    packages = required.read_text().split()
    kept = find_cache() / "wheels"
    fetch_wheels(kept, *packages)
    shutil.copytree(kept, project / "wheels")
    required.write_text("\n".join(["--no-index", "--find-links wheels", *packages, ""]))
    return project


def read_hosts(rig: PoolRig) -> dict[str, str]:
    """The host of each job of the first experiment."""
    found = json.loads(run_riseml(rig, EXAMPLE, "status", "1", "--json"))
    return {job["name"]: job["host"] for job in found["jobs"] if job["name"] != "build"}


def provide_data(rig: PoolRig) -> None:
    digits = find_cache() / "data" / "digits"
    subprocess.run([sys.executable, EXAMPLE / "get_data.py", digits], check=True)
    os.rmdir(rig.shared_folder / "data")
    (rig.shared_folder / "data").symlink_to(digits.parent)


def run_riseml(rig: PoolRig, folder: Path, *words: str) -> str:
    """What a command prints that ends well."""
    done = command.run_riseml(words, folder, rig.environ(), 2 * DEADLINE)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def provide_image(api: docker.APIClient, engine_url: str, name: str) -> None:
    if not any(name in (image["RepoTags"] or []) for image in api.images()):
        with docker.APIClient(base_url=engine_url, version="auto", timeout=300) as source:
            api.load_image(source.get_image(name))
