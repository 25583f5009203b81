"""What the jobs of one experiment run, and where its TensorBoard listens."""

from __future__ import annotations

from collections.abc import Callable

from riseml import wire
from riseml.base.names import CanonicalId, HostName, JobName
from riseml.base.states import JobDuty, State
from riseml.frameworks.tensorboard import TENSORBOARD, TENSORBOARD_PORT
from riseml.model import Experiment
from riseml.planning.template import fill_placeholders


def show_run(experiment: Experiment, canonical_id: CanonicalId | None) -> list[wire.RunView]:
    """Return the lines of `run`, filled, and their jobs; none of a companion, whose lines are those of riseml.

    Args:
        experiment: the experiment.
        canonical_id: only the jobs that it names; None: all.
    """
    if experiment.plan.companion is not None:
        return []
    jobs: dict[tuple[str, ...], list[JobName]] = {}
    for job in experiment.plan.jobs:
        if job.part is not JobDuty.WATCHES and (canonical_id is None or canonical_id.names(job.name)):
            jobs.setdefault(job.run, []).append(job.name)
    values = dict(experiment.plan.parameters)
    return [
        {"jobs": list(names), "lines": [fill_placeholders(line, values) for line in lines]}
        for lines, names in jobs.items()
    ]


def find_tensorboard(experiment: Experiment, is_this_machine: Callable[[HostName], bool]) -> str | None:
    """Return the URL of the TensorBoard of an experiment, as this machine reaches it while it runs; else None.

    A job on another machine, or in a network across hosts, has an address that this machine does not reach: `riseml
    tensorboard` opens it.
    """
    hosts = {job.host for job in experiment.gang}
    for job in experiment.gang:
        is_here = job.host is not None and is_this_machine(job.host) and len(hosts) == 1
        if job.name == TENSORBOARD and job.state is State.RUNNING and is_here and job.address:
            return f"http://{job.address}:{job.port or TENSORBOARD_PORT}"
    return None
