"""The answer of `explain` as lines."""

from __future__ import annotations

from riseml import wire
from riseml.cli.output.explanation_view import list_explanation
from riseml.cli.output.style import Style
from tests.unit.cli.explanations import explain


def test_places_say_the_images_of_roles_where_they_differ() -> None:
    place: wire.JobPlaceView = {
        "job": "learner",
        "state": "RUNNING",
        "host": "gpu1",
        "node": None,
        "gpus": [],
        "address": None,
        "port": None,
        "image": "python:3.11",
        "why": "first",
        "alternatives": [],
    }
    same = "\n".join(list_explanation(explain(phase="placed", jobs=[place, place]), Style()))
    other: wire.JobPlaceView = {**place, "job": "actor.1", "image": "redis:7"}
    both = "\n".join(list_explanation(explain(phase="placed", jobs=[place, other]), Style()))
    assert ("IMAGE" in same, "IMAGE" in both) == (False, True)
    assert "redis:7" in both
