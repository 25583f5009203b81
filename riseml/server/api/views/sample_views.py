"""The use of jobs in the shapes of the HTTP API. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import cast

from riseml import wire
from riseml.base.names import experiment_name
from riseml.model import Experiment, Job
from riseml.store.samples.sample_rows import AMOUNTS, SampleRow, resample_rows


def show_job_samples(experiment: Experiment, job: Job, rows: Iterable[SampleRow], step: int) -> wire.JobSamples:
    """Return the use of a job, as means of `step` seconds."""
    means = list(resample_rows(rows, 0, step))
    columns = zip(AMOUNTS, zip(*(row.amounts for row in means), strict=True), strict=True)
    amounts = {name: [_round_amount(value) for value in column] for name, column in columns}
    view = {
        "id": f"{experiment_name(experiment.number, experiment.sub)}.{job.name}",
        "project": experiment.project,
        "state": job.state.value,
        "host": job.host,
        "cpus": job.resources.cpus,
        "mem_mib": job.resources.mem,
        "gpus": job.resources.gpus,
        "time": [row.at for row in means],
        "attempt": [row.attempt for row in means],
    }
    return cast("wire.JobSamples", {**view, **amounts})


def _round_amount(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 1)
