"""The main job over three hosts: TensorFlow's parameter servers across the overlay network, on real digits."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import docker

from tests.real.e2e.console import RISEML
from tests.real.e2e.test_toaster import EXAMPLE, find_cache
from tests.real.pool.conftest import PoolRig

TENSORFLOW = "tensorflow/tensorflow:2.21.0"


def test_digits_are_learned_over_three_hosts(pool_rig: PoolRig, engine_url: str) -> None:
    pool_rig.post("/v1/pool/join")
    digits = find_cache() / "data" / "digits"
    subprocess.run([sys.executable, EXAMPLE / "get_data.py", digits], check=True)
    _provide(pool_rig.hosts[0].api, engine_url)
    os.rmdir(pool_rig.shared_folder / "data")
    (pool_rig.shared_folder / "data").symlink_to(digits.parent)
    changes = ("--set", "train.tensorflow.distributed.ps=2", "--set", "train.resources.cpus=1")
    said = _riseml(pool_rig, "train", *changes, "-p", "epochs=3")
    found = json.loads(_riseml(pool_rig, "status", "1", "--json"))
    jobs = {job["name"]: job["host"] for job in found["jobs"] if job["name"] != "build"}
    assert set(jobs) == {"master", "worker.1", "worker.2", "ps.1", "ps.2"}
    assert set(jobs.values()) == {"h1", "h2", "h3"}
    (accuracy,) = re.findall(r"^\d+\.master .*test accuracy: ([0-9.]+)", said, re.MULTILINE)
    assert float(accuracy) >= 0.85
    pool_rig.wait_closed("1")
    assert (pool_rig.containers(), pool_rig.networks()) == ([], [])


def _riseml(rig: PoolRig, *words: str) -> str:
    """What a command prints that ends well."""
    done = subprocess.run(
        [*RISEML, *words], cwd=EXAMPLE, env=rig.environ(), capture_output=True, text=True, check=False, timeout=400
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _provide(api: docker.APIClient, engine_url: str) -> None:
    if not any(TENSORFLOW in (image["RepoTags"] or []) for image in api.images()):
        with docker.APIClient(base_url=engine_url, version="auto", timeout=300) as source:
            api.load_image(source.get_image(TENSORFLOW))
