"""Explanations of experiments, as the server answers them."""

from __future__ import annotations

from typing import Literal

from riseml import wire

MB = 10**6
Work = Literal["pull", "install", "send", "data"]


def explain(*activities: tuple[Work, str, int, int | None], **changes: object) -> wire.ExplanationView:
    found: wire.ExplanationView = {
        "id": "4",
        "phase": "prepares",
        "state": "BUILDING",
        "reason": "PREPARE",
        "summary": "The environment is being prepared",
        "queue": None,
        "blockers": [],
        "hosts": [],
        "jobs": [],
        "activities": [
            {"host": "gpu1", "work": work, "what": what, "done": done, "total": total}
            for work, what, done, total in activities
        ],
        "network": None,
        "network_host": None,
    }
    return {**found, **changes}  # type: ignore[typeddict-item]  # the fields of the shape, by name
