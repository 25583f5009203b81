"""Results and histories of metrics, as the server answers them."""

from __future__ import annotations

from typing import Any

from riseml import wire
from tests.unit.cli.fake_server import NOW, FakeServer

BAD = "\x1b[2J\x07\u202e"


def make_metric(name: str, *values: float, last_step: int | None = 3) -> wire.MetricView:
    finite = [value for value in values if value == value]
    return {
        "name": name,
        "count": len(values),
        "last": values[-1] if values[-1] == values[-1] else "nan",
        "last_step": last_step,
        "last_at": NOW,
        "min": min(finite, default=None),
        "min_step": 1,
        "max": max(finite, default=None),
        "max_step": 1,
        "attempt": 1,
        "not_finite": len(values) - len(finite),
    }


def make_result(sub: int, rank: int | None, *metrics: wire.MetricView, **changes: Any) -> wire.ResultView:
    result: wire.ResultView = {
        "id": f"144.{sub}",
        "project": "toaster",
        "name": "",
        "tags": [],
        "note": "",
        "starred": False,
        "archived": False,
        "rank": rank,
        "value": metrics[0]["max"] if metrics and rank else None,
        "scores": {},
        "state": "FINISHED",
        "reason": "COMPLETED",
        "parameters": {"lr": f"0.{sub}", "epochs": "20"},
        "metrics": list(metrics),
        "workers": sub,
        "hosts": ["gpu1"],
        "seconds": 200.0 * sub,
        "started_at": NOW,
        "ended_at": NOW,
    }
    return {**result, **changes}  # type: ignore[typeddict-item]  # the fields of the shape, by name


BEST = make_result(2, 1, make_metric("accuracy", 0.981, 0.97), make_metric("loss", 0.5, 0.25))
ROWS = [
    BEST,
    make_result(1, 2, make_metric("accuracy", 0.5, 0.75), make_metric("loss", 3, float("nan"))),
    make_result(3, None, state="FAILED", seconds=None, hosts=[]),
]
FOUND: wire.ResultList = {
    "objective": {"metric": "accuracy", "goal": "maximize", "rule": "best", "words": "the largest accuracy"},
    "objectives": [],  # as a server of an earlier version answers
    "total": 4,
    "archived": 0,
    "matched": 3,
    "parameters": ["lr"],
    "same": {"epochs": "20"},
    "metrics": ["accuracy", "loss"],
    "best": BEST,
    "experiments": ROWS,
    "notes": [],
}


def make_history(sub: int, *values: float, steps: bool = True) -> wire.MetricHistoryView:
    buckets: list[wire.MetricBucket] = [
        {
            "first_step": 10 * at if steps else None,
            "last_step": 10 * at if steps else None,
            "first_at": NOW,
            "last_at": NOW,
            "min": value,
            "mean": value,
            "max": value,
            "count": 1,
            "not_finite": 0,
        }
        for at, value in enumerate(values, 1)
    ]
    return {"id": f"144.{sub}", "metric": "accuracy", "buckets": buckets}


def serve_plot(fake_server: FakeServer) -> None:
    fake_server.answers["GET /results"] = (200, FOUND)
    for sub in (1, 2):
        history = make_history(sub, 0.1 * sub, 0.2 * sub, 0.45 * sub)
        fake_server.answers[f"GET /experiments/144.{sub}/metrics/history"] = (200, history)
