"""A set whose experiments have different jobs, as processes of this machine."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.rig import BASE, Rig


def test_each_experiment_of_a_set_has_the_jobs_of_its_point(tmp_path: Path) -> None:
    train = {
        "image": BASE,
        "run": 'echo "$ROLE of $TOTAL_WORKERS with {{workers}}"',
        "roles": {"learner": {}, "worker": {"count": "{{workers}}", "resources": {"cpus": "{{cpus}}"}}},
        "resources": {"cpus": 0.1, "mem": "64MiB"},
        "parameters": {"workers": [1, 2], "cpus": 0.2},
        "concurrency": 2,
    }
    with Rig(tmp_path / "home", None) as rig:
        rig.submit(json.dumps({"project": "toaster", "train": train}))
        for name, workers in (("1.1", 1), ("1.2", 2)):
            jobs = ["learner", *(f"worker.{index}" for index in range(1, workers + 1))]
            assert rig.wait_closed(name)["state"] == "FINISHED"
            lines = [line for line in rig.lines(name) if ".build " not in line]
            assert sorted(lines) == [
                f"{name}.{job} {job.partition('.')[0]} of {workers + 1} with {workers}" for job in jobs
            ]
            assert [(job["name"], job["cpus"]) for job in rig.experiment(name)["jobs"] if job["name"] != "build"] == [
                (job, 0.1 if job == "learner" else 0.2) for job in jobs
            ]
