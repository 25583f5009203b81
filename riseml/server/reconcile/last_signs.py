"""When jobs that their hosts do not show any more were last known to run: their ends were not recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from riseml.base.errors import LogUnreadable
from riseml.base.names import HostName
from riseml.base.states import State
from riseml.executors.logs.timestamps import to_datetime, to_nanoseconds
from riseml.model import ContainerObservation, Experiment, HostObservation, Job, JobKey, World
from riseml.store.logs.log_store import LogStore
from riseml.store.samples.sample_store import SampleStore

_PASS = timedelta(seconds=3)
"""A job that was seen so short a time before was there until the present pass."""


class LastSigns:
    """Remembers in which pass each running job was last seen. After a restart of the server, the store has the last
    signs of a job: its newest sample and its newest line.

    Args:
        samples: of all jobs.
        logs: of all jobs.
    """

    def __init__(self, samples: SampleStore, logs: LogStore) -> None:
        self._samples = samples
        self._logs = logs
        self._seen: dict[JobKey, datetime] = {}
        self._stored: dict[JobKey, datetime] = {}  # read once: nothing is added for a job that no host shows

    def find(self, world: World, hosts: Mapping[HostName, HostObservation], moment: datetime) -> dict[JobKey, datetime]:
        """Return when jobs were last known to run that their hosts do not show, or that have no recorded end.

        A silent host that has answered before says itself since when it is silent.
        """
        running = {experiment.key_of(job): job for experiment, job in _list_running(world)}
        self._seen = {key: at for key, at in self._seen.items() if key in running}
        self._stored = {key: at for key, at in self._stored.items() if key in running}
        signs = {key: self._look(key, job, hosts, moment) for key, job in running.items()}
        return {key: sign for key, sign in signs.items() if sign is not None}

    def _look(
        self, key: JobKey, job: Job, hosts: Mapping[HostName, HostObservation], moment: datetime
    ) -> datetime | None:
        """Return the last sign of a job that its host does not show; None: it shows the job, or its end."""
        host = None if job.host is None else hosts.get(job.host)
        if host is not None and host.silent_since is not None:
            return None
        container = None if host is None else host.containers.get(key)
        if container is not None and container.running:
            self._seen[key] = moment
            return None
        return self._find_sign(key, job, moment) if container is None or _is_unseen_end(container) else None

    def _find_sign(self, key: JobKey, job: Job, moment: datetime) -> datetime | None:
        """Return the last sign of a job; None: it was there until now."""
        last = self._seen.get(key)
        if last is not None:
            return last if moment - last > _PASS else None
        if key not in self._stored:
            self._stored[key] = max(self._read_signs(key, job), default=moment)
        return self._stored[key]

    def _read_signs(self, key: JobKey, job: Job) -> Iterator[datetime]:
        if job.begun_at is not None:
            yield job.begun_at
        sample = self._samples.find_last(key)
        if sample is not None:
            yield datetime.fromtimestamp(sample, UTC)
        try:
            lines = self._logs.read_last_lines(key, 1)
        except LogUnreadable:  # the follower of the job says so
            lines = []
        for line in lines:
            yield to_datetime(to_nanoseconds(line.at))


def _list_running(world: World) -> Iterator[tuple[Experiment, Job]]:
    for experiment in world.experiments:
        for job in experiment.gang:
            if job.state is State.RUNNING:
                yield experiment, job


def _is_unseen_end(container: ContainerObservation) -> bool:
    return container.started and not container.running and container.finished_at is None and container.ran is None
