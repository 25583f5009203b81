"""Copies of an experiment's data on hosts that do not see the data that the server has fetched.

Such a host gets a copy before the experiment takes a place there, so that no GPU waits for it. `placement.place`
chooses the host. A host that has lost its copy after that gets another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from riseml.base.names import HostName
from riseml.control.actions import CopyData
from riseml.control.observation import Observation
from riseml.model import ActionFailure, Experiment, Job


def find_copies_under_way(experiment: Experiment, observation: Observation) -> tuple[CopyData, ...]:
    """Return the copies of an experiment's data that are pending."""
    if experiment.id not in observation.copied:
        return ()
    copies = (
        action for action in observation.busy if isinstance(action, CopyData) and action.experiment == experiment.id
    )
    return tuple(sorted(copies, key=lambda action: action.host))


def find_copy_problem(experiment: Experiment, host: HostName, observation: Observation) -> ActionFailure | None:
    """Return why the last copy of an experiment's data to a host failed; None: it did not."""
    return observation.problems.get(CopyData(host, experiment.id))


def lacks_data(experiment: Experiment, host: HostName, observation: Observation) -> bool:
    """Return True when a host neither sees the data of an experiment nor has a copy of it."""
    having = observation.copied.get(experiment.id)
    return having is not None and host not in having


def find_missing_copies(experiment: Experiment, jobs: Iterable[Job], observation: Observation) -> Iterator[CopyData]:
    """Yield the copies of the data to the hosts of placed jobs that have lost it, or never had it."""
    for host in sorted({job.host for job in jobs if job.host is not None}):
        if lacks_data(experiment, host, observation):
            yield CopyData(host, experiment.id)
