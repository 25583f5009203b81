"""The steps of the pipeline. A job finds the output of another run at the path in RISEML_INPUT_NAME."""

import json
import os
import random
from pathlib import Path

import riseml


def prepare(count: int) -> int:
    """Write points of a line with noise, and return how many."""
    source = random.Random(1)
    points = [(x, 3 * x + 2 + source.gauss(0, 0.1)) for x in (source.random() for _ in range(count))]
    Path(os.environ["OUTPUT_DIR"], "points.json").write_text(json.dumps(points))
    return count


def train(rate: float) -> float:
    """Fit a line to the first half of the points, write it, and return its error."""
    points = _read_points()[::2]
    slope = offset = 0.0
    for x, y in points * 3:
        error = slope * x + offset - y
        slope -= rate * error * x
        offset -= rate * error
    riseml.report(error=_measure(slope, offset, points))
    Path(os.environ["OUTPUT_DIR"], "line.json").write_text(json.dumps([slope, offset]))
    return _measure(slope, offset, points)


def evaluate() -> float:
    """Return the error of the trained line on the other half of the points."""
    slope, offset = json.loads(Path(os.environ["RISEML_INPUT_MODEL"], "line.json").read_text())
    return _measure(slope, offset, _read_points()[1::2])


def _read_points() -> list[tuple[float, float]]:
    return [(x, y) for x, y in json.loads(Path(os.environ["RISEML_INPUT_DATA"], "points.json").read_text())]


def _measure(slope: float, offset: float, points: list[tuple[float, float]]) -> float:
    return sum((slope * x + offset - y) ** 2 for x, y in points) / len(points)
