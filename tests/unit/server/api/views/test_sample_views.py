"""What a job has used, in columns."""

from __future__ import annotations

import math
from dataclasses import replace

from riseml.server.api.views.sample_views import show_job_samples
from riseml.store.samples.sample_rows import AMOUNTS, SampleRow
from tests.unit.control.simulation import make_experiment, make_plan
from tests.unit.server.memory_pool import H1

BEGUN = 1_788_160_980  # a multiple of 60


def make_row(second: int, first: float) -> SampleRow:
    """Return a row with one amount; the others are not known."""
    return SampleRow(BEGUN + second, 1, (first, *(math.nan for _ in AMOUNTS[1:])))


def test_means_are_rounded_and_what_is_not_known_is_none() -> None:
    experiment = make_experiment(9, make_plan("train"), number=4)
    job = replace(experiment.gang[0], host=H1)
    rows = [make_row(0, 10.0), make_row(10, 20.26), make_row(60, 40.0)]
    view = show_job_samples(experiment, job, rows, 60)
    columns = dict(view)
    assert (view["id"], view["host"], len(view["time"])) == ("4.train", "h1", 2)
    assert columns[AMOUNTS[0]] == [15.1, 40.0]
    assert columns[AMOUNTS[1]] == [None, None]
