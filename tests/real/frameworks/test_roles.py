"""Roles of the user's own, with the examples that learn real digits: from rewards, and on a Ray cluster."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.real.e2e.console import Console, Result
from tests.real.frameworks.test_toaster import EXAMPLE, find_cache
from tests.support.rig import BASE, Rig
from tests.support.waiting import DEADLINE

GANG = EXAMPLE.parent / "roles-digits"
RAY = EXAMPLE.parent / "ray-digits"
PATIENT = ("--set", f"train.finish_grace={DEADLINE}")  # for the last lines of the actors


@pytest.fixture(scope="module")
def data() -> str:
    folder = find_cache() / "data"
    subprocess.run([sys.executable, EXAMPLE / "get_data.py", folder / "digits"], check=True)
    return str(folder)


def check_gang(result: Result, console: Console) -> None:
    """The policy was learned, no actor began before the others answered, and each role ended as it should."""
    assert (result.code, result.err) == (0, ""), result.out
    (accuracy,) = re.findall(r"\.learner +\| \[[^]]+\] test accuracy: ([0-9.]+)", result.out)
    assert float(accuracy) >= 0.75, "chance is 0.10"
    for actor in ("actor.1", "actor.2"):
        first, second, third, last = result.lines(actor)
        assert first.startswith("riseml: waiting until learner answers at ")
        assert second.startswith("riseml: waiting until arena answers at ")
        assert third == "riseml: everything that this job waited for answers"
        assert re.fullmatch("played [1-9][0-9]* digits", last), "the probes of both actors did the services no harm"
    found = console.ask("status", result.id)
    states = {job["name"]: (job["state"], job["reason"]) for job in found["jobs"] if job["name"] != "build"}
    assert states == {
        "learner": ("FINISHED", "COMPLETED"),
        "arena": ("FINISHED", "NO_LONGER_NEEDED"),
        "actor.1": ("FINISHED", "COMPLETED"),
        "actor.2": ("FINISHED", "COMPLETED"),
    }
    policy = json.loads((Path(found["output"]) / "policy.json").read_text())
    assert len(policy) == 10


def test_a_gang_of_roles_learns_in_containers(tmp_path: Path, engine_url: str, data: str) -> None:
    console = Console(tmp_path / "home", engine_url, GANG, RISEML_DATA=data).fork_server()
    try:
        check_gang(console.run("train", "--set", "train.image=riseml-test/base:py311", *PATIENT), console)
        assert console.leftovers() == []
    finally:
        console.close()


def test_a_gang_of_roles_learns_without_docker(tmp_path: Path, engine_url: str, data: str) -> None:
    console = Console(tmp_path / "home", engine_url, GANG, RISEML_DATA=data, RISEML_EXECUTOR="process").fork_server()
    try:
        check_gang(console.run("train", *PATIENT), console)
    finally:
        console.run("server", "stop")
        console.engine.close()


def test_a_wait_for_a_role_that_has_ended_is_named(process_rig: Rig) -> None:
    """`after` waits for an answer: without one, the end of a role means that none comes."""
    roles = {"learner": {"run": "echo never", "after": ["prepare"]}, "prepare": {"run": "echo ready", "ends": "helps"}}
    train = {"image": BASE, "resources": {"cpus": 0.1, "mem": "64MiB"}, "roles": roles}
    process_rig.submit(json.dumps({"project": "toaster", "train": train}))
    found = process_rig.wait_closed("1")
    assert (found["state"], found["reason"], found["cause"]) == ("FAILED", "AWAITED_ENDED", "learner")
    assert found["message"] == "learner waits for prepare, which has ended with exit code 0"
    assert not any("never" in line for line in process_rig.lines("1"))


def test_a_ray_cluster_runs_a_ray_job(tmp_path: Path, engine_url: str, data: str) -> None:
    console = Console(tmp_path / "home", engine_url, RAY, RISEML_DATA=data).fork_server()
    try:
        result = console.run("train", "--set", "train.image=riseml-test/ray:2.60.0")
        assert (result.code, result.err) == (0, ""), result.out
        assert "2 workers on 2 nodes, the driver on another one: True" in result.lines("head")
        (accuracy,) = re.findall(r"test accuracy: ([0-9.]+)", result.out)
        assert float(accuracy) >= 0.85
        found = {job["name"]: job["reason"] for job in console.ask("status", result.id)["jobs"]}
        assert found["head"] == "COMPLETED"
        assert found["worker.1"] == found["worker.2"] == "NO_LONGER_NEEDED"
        assert console.leftovers() == []
    finally:
        console.close()
