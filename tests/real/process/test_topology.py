"""A set whose experiments have different jobs, as processes of this machine: its jobs, its results, how it scales."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import yaml

from tests.real.api.test_dry_run import riseml, write
from tests.support.rig import BASE, Rig

TRAINING = """\
echo "$ROLE of $TOTAL_WORKERS with {{workers}}"
if [ "$ROLE" = learner ]; then
  for step in 1 2 3; do printf 'riseml.report {"step": %s, "accuracy": 0.%s%s}\\n' $step {{workers}} $step; done
  printf 'riseml.report {"rate": %s00, "accuracy": %s}\\n' {{workers}} 0.05
fi
[ {{workers}} != 3 ]
"""
TRAIN: dict[str, Any] = {
    "image": BASE,
    "run": TRAINING,
    "roles": {"learner": {}, "worker": {"count": "{{workers}}", "resources": {"cpus": "{{cpus}}"}, "ends": "serves"}},
    "resources": {"cpus": 0.1, "mem": "64MiB"},
    "parameters": {"workers": [1, 2, 3], "cpus": 0.2},
    "concurrency": 3,
    "search": {"method": "grid", "metric": "accuracy", "goal": "maximize"},
}


def test_each_experiment_of_a_set_has_the_jobs_and_the_results_of_its_point(tmp_path: Path) -> None:
    TRAIN["roles"]["worker"]["run"] = TRAINING.replace("[ {{workers}} != 3 ]", "exec sleep 600")
    config = json.dumps({"project": "toaster", "train": TRAIN})
    folder = write(tmp_path / "project", config)
    with Rig(tmp_path / "home", None) as rig:
        rig.submit(config)
        for name, workers, state in (("1.1", 1, "FINISHED"), ("1.2", 2, "FINISHED"), ("1.3", 3, "FAILED")):
            found = rig.wait_closed(name)
            assert found["state"] == state
            jobs = {job["name"]: job["cpus"] for job in found["jobs"] if job["name"] != "build"}
            assert jobs == {"learner": 0.1} | {f"worker.{index}": 0.2 for index in range(1, workers + 1)}
            assert f"{name}.learner learner of 1 with {workers}" in rig.lines(f"{name}.learner")
            record = yaml.safe_load(Path(found["output"], "riseml-configuration.yml").read_text())
            assert (record["params"], record["state"]) == ({"workers": workers, "cpus": 0.2}, state)
            accuracy = record["results"]["accuracy"]
            assert (accuracy["last"], accuracy["max"], accuracy["max_step"]) == (0.05, float(f"0.{workers}3"), 3)
        end = "2 of 3 finished, 1 failed, best 1.2 accuracy 0.23 (workers=2, cpus=0.2)"
        assert rig.wait_closed("1")["message"] == end
        assert rig.logs("1")[-1]["message"] == end
        assert f"Reason: COMPLETED ({end})" in riseml(rig, folder, "status", "1").out
        ranks = {one["id"]: one["rank"] for one in rig.get("/v1/results", of="1")["experiments"]}
        assert ranks == {"1.2": 1, "1.1": 2, "1.3": None}
        shown = riseml(rig, folder, "results", "1", "--sort", "-accuracy", "--where", "rate>50").out.splitlines()
        assert [line.split()[:3] for line in shown[1:4]] == [["-", "1.3", "3"], ["*", "1", "1.2"], ["2", "1.1", "1"]]
        rows = [*csv.DictReader(riseml(rig, folder, "results", "--csv", "--sort", "id").out.splitlines())]
        assert [(row["id"], row["accuracy.max"], row["rate.last"]) for row in rows] == [
            ("1.1", "0.13", "100"),
            ("1.2", "0.23", "200"),
            ("1.3", "0.33", "300"),
        ]
        recent = ("results", "1", "--where", "started>now-1h and ended>2026-01-01 and state=finished", "--sort", "id")
        markdown = riseml(rig, folder, *recent, "--format", "md", "--columns", "id,cpus").out.splitlines()
        assert markdown[2:] == ["| 1.1 | 0.2 |", "| 1.2 | 0.2 |"]
        (scaling,) = csv.DictReader(riseml(rig, folder, "results", "1", "--scaling", "--csv").out.splitlines())
        assert (scaling["workers"], scaling["runs"], scaling["rate"], scaling["speed-up"]) == ("1", "2", "150", "1")
        curve = json.loads(riseml(rig, folder, "plot", "1.1", "accuracy", "--json").out)
        assert [y for _, y in curve["series"][0]["points"]] == [0.11, 0.12, 0.13, 0.05]
        different = json.loads(riseml(rig, folder, "compare", "1.1", "1.2", "--json").out)
        assert [one["name"] for one in different["parameters"]] == ["workers"]
        assert [one["name"] for one in different["metrics"]] == ["accuracy", "rate"]
