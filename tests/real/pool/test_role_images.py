"""Roles with images of their own, over several hosts: each environment is made once, and goes where its role runs."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import yaml

from tests.real.pool.conftest import NewEnvironments, PoolRig
from tests.support.command import run_riseml
from tests.support.rig import BASE

OTHER = "riseml-test/other"
SPEC = {
    "project": "toaster",
    "train": {
        "image": BASE,
        "retry": 1,
        "resources": {"cpus": 2, "mem": "64MiB"},
        "roles": {
            "learner": {"run": 'test ! -e /made && test "$RISEML_ATTEMPT" = 2 && echo plain', "ends": "decides"},
            "actor": {
                "count": 2,
                "image": f"{OTHER}:1",
                "install": [f"echo {uuid4().hex} made for actors | tee /made"],  # no build has cached it
                "run": "cat /made; exec sleep 600",
            },
        },
    },
}


def test_each_environment_is_made_once_and_goes_where_its_role_runs(
    pool_rig: PoolRig, new_environments: NewEnvironments
) -> None:
    pool_rig.post("/v1/pool/join")
    builder = pool_rig.hosts[0].api
    builder.tag(BASE, OTHER, "1")
    try:
        pool_rig.submit(json.dumps(SPEC))
        found = pool_rig.wait_closed("1")
        assert (found["state"], found["exit_code"]) == ("FINISHED", 0), found
        lines = pool_rig.lines("1")
        made = [line for line in lines if line.startswith("1.build ") and line.endswith("made for actors")]
        # a busy machine: where the host that has it does not answer for a moment, another host makes it again
        silences = (pool_rig.home / "server.log").read_text().count(" does not answer: ")
        assert 1 <= len(made) <= 1 + silences, (made, pool_rig.last_words())
        assert [line for line in lines if line.startswith("1.learner ")] == ["1.learner plain"]
        jobs = {job["name"]: job for job in found["jobs"]}
        assert {job["attempt"] for name, job in jobs.items() if name != "build"} == {2}
        assert {name: job["image"] for name, job in jobs.items() if name != "build"} == {
            "learner": BASE,
            "actor.1": f"{OTHER}:1",
            "actor.2": f"{OTHER}:1",
        }
        record = yaml.safe_load(Path(found["output"], "riseml-configuration.yml").read_text())
        (reference,) = record["role_images"].values()
        having = {name for name, tags in new_environments().items() if reference in tags}
        needing = {jobs[name]["host"] for name in ("actor.1", "actor.2")}
        assert needing <= having <= needing | {jobs["build"]["host"]}
        told = _ask(pool_rig, "status", "1")
        assert f"Image of actor: {OTHER}:1" in told
        assert f"1.actor.1 in {OTHER}:1" in _ask(pool_rig, "env", "1")
        pool_rig.submit(json.dumps(SPEC))
        again = pool_rig.wait_closed("2")
        assert next(job["reason"] for job in again["jobs"] if job["name"] == "build") == "CACHED"
    finally:
        builder.remove_image(f"{OTHER}:1")
    pool_rig.check_nothing_left()


def _ask(rig: PoolRig, *words: str) -> str:
    done = run_riseml(words, rig.home, rig.environ())
    assert done.returncode == 0, done.stderr
    return done.stdout
