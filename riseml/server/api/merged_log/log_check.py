"""A log that was lost or damaged is noticed before it is read, so that its reader gets a line or a sentence."""

from __future__ import annotations

from riseml.model import Experiment
from riseml.store.logs.log_store import LogStore


def prepare_log(experiment: Experiment, logs: LogStore) -> None:
    """Check the log of an experiment. When the experiment has ended and lines are missing, a line in the log says so.

    Raises:
        LogUnreadable: the log cannot be read.
    """
    ran = next((job for job in experiment.gang if job.started_at is not None), None)
    if experiment.closed and ran is not None:
        logs.mend_log(experiment.key_of(ran))
    logs.check_readable(experiment.id)
