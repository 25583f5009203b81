"""Streams into jobs: to a job that runs, or the reason why there is none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from riseml.base.errors import Conflict, NotFound, RisemlError, Unreachable
from riseml.base.names import HostName
from riseml.base.states import State
from riseml.base.stream_messages import CommandRequest
from riseml.model import ContainerObservation, Experiment
from riseml.server.access.job_access import JobConnector
from tests.unit.control.simulation import make_experiment, make_plan
from tests.unit.server.memory_pool import H1, make_host, make_hosts

ORDER = CommandRequest(("true",))


def make_running(host: HostName | None = H1, state: State = State.RUNNING) -> Experiment:
    """Return an experiment whose one job is in a state."""
    experiment = make_experiment(1, make_plan("train"), number=4)
    return replace(experiment, jobs=tuple(replace(job, host=host, state=state) for job in experiment.gang))


def test_a_command_and_a_port_are_opened_in_a_job_that_runs(tmp_path: Path) -> None:
    host, experiment = make_host(), make_running()
    key = experiment.key_of(experiment.gang[0])
    host.containers[key] = ContainerObservation(key, "c", started=True)
    door = JobConnector(make_hosts(tmp_path, host), experiment, experiment.gang[0])
    assert (door.title, door.experiment) == ("4.train", 1)
    with door.open_command(ORDER).socket, host.commands[0].far:
        assert host.commands[0].order == ORDER
    with pytest.raises(NotFound, match=r"nothing listens on port 6006 in 4\.train"):
        door.open_port(6006)


def test_a_job_that_has_just_ended_is_named(tmp_path: Path) -> None:
    experiment = make_running()
    door = JobConnector(make_hosts(tmp_path, make_host()), experiment, experiment.gang[0])
    with pytest.raises(Conflict, match=r"4\.train does not run any more"):
        door.open_command(ORDER)


@pytest.mark.parametrize(
    ("host", "state", "error", "message"),
    [
        (H1, State.FINISHED, Conflict, "4.train has ended .FINISHED."),
        (None, State.CREATED, Conflict, "4.train has not begun, it is CREATED"),
        (H1, State.STARTING, Conflict, "4.train has not begun, it is STARTING"),
        (HostName("h9"), State.RUNNING, Unreachable, "h9, the host of 4.train, is not in the pool"),
    ],
)
def test_a_job_that_cannot_be_entered_says_why(
    tmp_path: Path, host: HostName | None, state: State, error: type[RisemlError], message: str
) -> None:
    experiment = make_running(host, state)
    with pytest.raises(error, match=message):
        JobConnector(make_hosts(tmp_path, make_host()), experiment, experiment.gang[0])


def test_a_host_that_does_not_answer_is_named(tmp_path: Path) -> None:
    host = make_host()
    host.faults.silent = True
    experiment = make_running()
    with pytest.raises(Unreachable, match=r"h1, the host of 4\.train, does not answer"):
        JobConnector(make_hosts(tmp_path, host), experiment, experiment.gang[0])
