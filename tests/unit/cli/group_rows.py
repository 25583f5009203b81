"""Groups of runs, as the server answers them."""

from __future__ import annotations

from typing import Any

from riseml import wire
from riseml.analysis.seed_statistics import describe_spread


def make_group(first: int, lr: str, *values: float, rank: int | None = None, **changes: Any) -> wire.GroupView:
    spread = describe_spread(values) if values else None
    ids = [f"144.{first + at}" for at in range(len(values))]
    group: wire.GroupView = {
        "ids": ids,
        "rank": rank,
        "parameters": {"lr": lr, "epochs": "20"},
        "n": len(values),
        "mean": None if spread is None else spread.mean,
        "deviation": None if spread is None else spread.deviation,
        "low": None if spread is None else spread.low,
        "high": None if spread is None else spread.high,
        "runs": [
            {"id": name, "seed": str(seed), "value": value}
            for seed, (name, value) in enumerate(zip(ids, values, strict=True), 1)
        ],
        "failed": 0,
        "stopped": 0,
        "unfinished": 0,
        "beyond": 0,
    }
    return {**group, **changes}  # type: ignore[typeddict-item]  # the fields of the shape, by name


STEADY = make_group(1, "0.1", 0.91, 0.92, 0.93, 0.92, 0.91, rank=1)
LUCKY = make_group(6, "0.01", 0.99, 0.7, 0.72, 0.71, 0.7, rank=2)
BROKEN = make_group(11, "=1", 0.95, rank=None, ids=["144.11", "144.12"], failed=1)
GROUPS: wire.GroupList = {
    "objective": {"metric": "accuracy", "goal": "maximize", "rule": "best", "words": "the largest accuracy"},
    "column": "accuracy",
    "total": 12,
    "matched": 12,
    "parameters": ["lr"],
    "same": {"epochs": "20"},
    "best_run": {"id": "144.6", "seed": "1", "value": 0.99},
    "groups": [STEADY, LUCKY, BROKEN],
}
