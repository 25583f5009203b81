"""A comparison of two experiments, as the server answers it."""

from __future__ import annotations

from riseml import wire
from tests.unit.cli.fake_server import NOW
from tests.unit.cli.result_rows import make_metric

FOUND: wire.ComparisonView = {
    "experiments": [
        {
            "id": "4",
            "project": "toaster",
            "state": "FINISHED",
            "started_at": NOW,
            "ended_at": "2026-08-31T09:23:46Z",
            "seconds": 7200.0,
        },
        {
            "id": "7",
            "project": "toaster",
            "state": "RUNNING",
            "started_at": NOW,
            "ended_at": None,
            "seconds": 200.5,
        },
    ],
    "parameters": [{"name": "lr", "values": ["0.1", "0.01"]}, {"name": "depth", "values": [None, "3"]}],
    "config": [
        {"name": "resources.cpus", "values": ["1", "2"]},
        {"name": "run", "values": ["python train.py", "python prepare.py\npython train.py --with 日本 " + "x" * 90]},
    ],
    "environment": [],
    "code": [
        {"path": "data.py", "versions": [None, "1f"]},
        {"path": "old.py", "versions": ["2f", None]},
        {"path": "train.py", "versions": ["2f", "3f"]},
    ],
    "metrics": [
        {"name": "accuracy", "metrics": [make_metric("accuracy", 0.5, 0.25), make_metric("accuracy", 0.75)]},
        {"name": "loss", "metrics": [None, make_metric("loss", 1 / 3)]},
    ],
    "code_unknown": [],
}
