"""Open streams into the jobs of an experiment: find the host of the job, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable

from riseml.base.errors import Conflict, NotFound, Refused, RisemlError, Unreachable
from riseml.base.names import HostName, experiment_name
from riseml.base.states import TERMINAL, State
from riseml.base.stream_messages import CommandRequest
from riseml.executors.base import Executor, NotThere, PortClosed
from riseml.executors.capabilities import JobAccess
from riseml.executors.job_streams import JobStream
from riseml.model import Experiment, Job, JobKey
from riseml.server.hosts.host_set import HostSet


class JobConnector:
    """Opens streams into one job.

    Raises:
        RisemlError: the job does not run, or its host does not answer.
    """

    def __init__(self, hosts: HostSet, experiment: Experiment, job: Job) -> None:
        name = experiment_name(experiment.number, experiment.sub)
        self.title = f"{name}.{job.name}"
        self.experiment = experiment.id
        self._key = experiment.key_of(job)
        self._experiment = name
        check_running(self.title, name, job)
        access = find_executor(hosts, job.host, self.title).capabilities.access
        if access is None:
            raise Refused(f"{job.host}, the host of {self.title}, opens no streams into its jobs")
        self._access = access

    def open_command(self, request: CommandRequest) -> JobStream:
        """Start a command. Blocks."""
        return self._open_stream(lambda access, key: access.open_command(key, request))

    def open_port(self, port: int) -> JobStream:
        """Connect to a port. Blocks."""
        try:
            return self._open_stream(lambda access, key: access.open_port(key, port))
        except PortClosed:
            raise NotFound(
                f"nothing listens on port {port} in {self.title}",
                f"`riseml logs {self.title}` shows whether its program has begun to listen, and where",
            ) from None

    def _open_stream(self, ask: Callable[[JobAccess, JobKey], JobStream]) -> JobStream:
        try:
            return ask(self._access, self._key)
        except NotThere:
            raise Conflict(f"{self.title} does not run any more", f"`riseml status {self._experiment}`") from None


def check_running(title: str, experiment: str, job: Job) -> None:
    """Check that a job runs.

    Args:
        title: its ID, for people.
        experiment: that of its experiment.
        job: its record.

    Raises:
        Conflict: it does not.
    """
    if job.state in TERMINAL:
        raise Conflict(f"{title} has ended ({job.state.value})", f"`riseml logs {title}` shows what it printed")
    if job.state is not State.RUNNING or job.host is None:
        raise Conflict(
            f"{title} has not begun, it is {job.state.value}", f"`riseml explain {experiment}` says what it waits for"
        )


def find_executor(hosts: HostSet, host: HostName | None, title: str) -> Executor:
    """Return the executor that runs a job.

    Raises:
        Unreachable: its host has left the pool, or does not answer.
    """
    executor = None if host is None else hosts.pool.executors.get(host)
    if executor is None:
        raise Unreachable(f"{host}, the host of {title}, is not in the pool", "`riseml pool` lists the hosts")
    trouble: RisemlError | None = hosts.find_troubles().get(executor.name)
    if trouble is not None:
        raise Unreachable(f"{host}, the host of {title}, does not answer: {trouble.message}", trouble.hint)
    return executor
