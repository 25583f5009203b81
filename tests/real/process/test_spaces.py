"""Spaces of parameters over real jobs, as processes of this machine: what jobs get, and the front of two objectives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.rig import BASE, Rig

_RUN = """
[ "{{optimizer.name}}" = "$OPTIMIZER_NAME" ]
[ "{{momentum}}" = "${MOMENTUM:-none}" ]
[ "$UNITS" -le $((16 * LAYERS)) ]
printf 'riseml.report {"units": %s, "layers": %s, "noise": %s}\\n' "$UNITS" "$LAYERS" "$NOISE"
"""


def make_config(**search: Any) -> str:
    parameters = {
        "optimizer.name": ["adam", "sgd"],
        "momentum": {"values": ["0.50", 0.9], "when": {"optimizer.name": "sgd"}, "default": "none"},
        "layers": [1, 2, 3],
        "units": {"int": {"min": 1, "max": "{{layers}} * 16"}},
        "noise": {"normal": {"mean": 0, "sd": 0.1}},
    }
    points = [{"optimizer.name": "sgd", "momentum": "0.50", "layers": 3, "units": 48}, {"optimizer.name": "adam"}]
    search = {
        "method": "tpe",
        "trials": 6,
        "seed": 7,
        "points": points,
        "constraints": ["units + layers > 4", "metrics.units < 48"],
        **search,
    }
    train = {"image": BASE, "run": _RUN, "resources": {"cpus": 0.1, "mem": "64MiB"}, "concurrency": 2}
    return json.dumps({"project": "spaces", "train": {**train, "parameters": parameters, "search": search}})


def test_jobs_get_the_parameters_that_are_there_and_results_rank_by_fronts(tmp_path: Path) -> None:
    with Rig(tmp_path / "home", None) as rig:
        rig.submit(make_config(metrics={"units": "minimize", "layers": "maximize"}))
        ended = rig.wait_closed("1")
        assert (ended["state"], ended["search"]["complete"]) == ("FINISHED", 6), ended["message"]
        points = [member["parameters"] for member in ended["experiments"]]
        given = {"optimizer.name": "sgd", "momentum": "0.50", "layers": "3", "units": "48"}
        assert points[0] == {**given, "noise": points[0]["noise"]}
        assert points[1]["optimizer.name"] == "adam"
        for point in points:
            assert ("momentum" in point) == (point["optimizer.name"] == "sgd")
            assert int(point["units"]) + int(point["layers"]) > 4
        results = rig.get("/v1/results", of="1", where="optimizer.name=sgd")
        assert {row["parameters"]["optimizer.name"] for row in results["experiments"]} == {"sgd"}
        results = rig.get("/v1/results", of="1")
        front = [row["id"] for row in results["experiments"] if row["rank"] == 1]
        assert sorted(front) == sorted(ended["search"]["front"])
        assert f"{len(front)} on the front: " in ended["message"]
        assert results["best"] is None
        assert "1.1" not in front
        assert next(row["rank"] for row in results["experiments"] if row["id"] == "1.1") is None
        assert "beyond the constraints" in ended["search"]["message"]
