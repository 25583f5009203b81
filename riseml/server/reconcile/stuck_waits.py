"""Jobs that wait (`after`) for a job which has ended: the control loop ends their experiments.

A job writes into its log which job it waits for, and when the wait is over. The server has no other source: it does not
see the connections of jobs. It reads only the logs of experiments in which a role has ended that others may still wait
for.
"""

from __future__ import annotations

from collections.abc import Iterator

from riseml.base.errors import LogUnreadable
from riseml.base.names import JobName
from riseml.base.states import State
from riseml.frameworks.roles import is_waiting_for, list_awaited, says_that_it_waits
from riseml.model import Experiment, Job, JobKey, World
from riseml.planning.launch import job_addresses
from riseml.store.logs.log_store import LogStore


class StuckWaits:
    """Finds jobs that wait for a job which has ended. Only the control loop calls it.

    Args:
        logs: of all jobs.
    """

    def __init__(self, logs: LogStore) -> None:
        self._logs = logs
        self._begun: set[JobKey] = set()  # jobs that have printed a line after their wait, so that the wait is over

    def find(self, world: World) -> dict[JobKey, JobName]:
        """Return the jobs whose last line says that they wait for a job which has ended, with its name."""
        candidates = {
            experiment.key_of(job): (experiment, job, ended)
            for experiment in world.experiments
            for job, ended in _list_candidates(experiment)
        }
        self._begun &= candidates.keys()
        peers = {key: self._find_peer(*candidate) for key, candidate in candidates.items() if key not in self._begun}
        return {key: peer for key, peer in peers.items() if peer is not None}

    def _find_peer(self, experiment: Experiment, job: Job, ended: list[JobName]) -> JobName | None:
        try:
            lines = self._logs.read_last_lines(experiment.key_of(job), 1)
        except LogUnreadable:  # the follower of the job says so; the loop goes on with everything else
            lines = []
        if not lines:
            return None
        last = lines[-1].text.decode("utf-8", "replace")
        addresses = job_addresses(experiment)
        if not says_that_it_waits(last):
            self._begun.add(experiment.key_of(job))
        waits = (peer for peer in ended if is_waiting_for(experiment.plan, job.name, peer, addresses[peer], last))
        return next(waits, None)


def _list_candidates(experiment: Experiment) -> Iterator[tuple[Job, list[JobName]]]:
    """Yield the jobs that run and may wait for a job that has ended."""
    ended = {job.name for job in experiment.gang if job.state is State.FINISHED}
    if not ended or experiment.verdict is not None:
        return
    for job in experiment.gang:
        awaited = [] if job.state is not State.RUNNING else list_awaited(experiment.plan, job.name)
        over = [name for name in awaited if name in ended]
        if over:
            yield job, over
