"""The use of jobs in the shapes of the HTTP API. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import cast

from riseml import wire
from riseml.control.visible_names import name_seen
from riseml.model import Caller, Experiment, Job
from riseml.store.samples.sample_rows import AMOUNTS, SampleRow, resample_rows


def show_job_samples(
    experiment: Experiment, job: Job, rows: Iterable[SampleRow], step: int, caller: Caller | None = None
) -> wire.JobSamples:
    """Return the use of a job, as means of `step` seconds, for a caller; None: its user asks."""
    means = list(resample_rows(rows, 0, step))
    columns = zip(AMOUNTS, zip(*(row.amounts for row in means), strict=True), strict=True)
    amounts = {name: [_round_amount(value) for value in column] for name, column in columns}
    view = {
        "id": f"{name_seen(caller, experiment)}.{job.name}",
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
