"""What an experiment that does not run yet waits for."""

from __future__ import annotations

import pytest

from riseml import wire
from riseml.cli.output.explanation_view import list_explanation
from riseml.cli.output.style import Style
from riseml.cli.output.waiting_view import list_waiting
from riseml.cli.output.widths import measure_width
from tests.unit.cli.explanations import MB, explain


@pytest.mark.parametrize("width", [40, 80, 200])
def test_what_hosts_do_for_an_environment(width: int) -> None:
    found = explain(
        ("pull", "tensorflow/tensorflow:2.21.0", 123 * MB, 456 * MB),
        ("install", "pip install -r requirements.txt", 2, 5),
        ("send", "riseml/environment:1", 3 * MB, None),
    )
    lines = list_waiting(found, {("gpu1", "pull"): 8.0 * MB}, Style(width=width))
    assert all(measure_width(text) <= width for text in lines)
    text = "\n".join(lines)
    for part in ("123.0 MB of 456.0 MB", "Install step 2 of 5 on gpu1", "Sending the environment to gpu1", "3.0 MB"):
        assert part in text
    assert "Sending the environment to gpu1: 3.0 MB" in list_explanation(found, Style())


def test_the_place_in_the_queue_and_what_is_missing() -> None:
    queue: wire.QueuePlaceView = {"position": 2, "length": 3, "ahead": ["3"]}
    found = explain(phase="waits", queue=queue, summary="no room now, and 3 is next before it; gpu1 lacks 2 CPUs")
    assert list_waiting(found, {}, Style(width=80)) == [
        "4 waits at place 2 of 3 in the queue, behind 3",
        "no room now, and 3 is next before it; gpu1 lacks 2 CPUs",
    ]
