"""The shell of a job in its record: as its role chose it, or as the job has reported it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from riseml.base.names import HostName
from riseml.base.states import State
from riseml.control.observation import Observation
from riseml.control.settle import note_shells
from riseml.model import Capacity, ContainerObservation, HostObservation
from riseml.planning.plan import make_next_attempt
from riseml.spec.config.types import Shell
from tests.unit.control.simulation import START, make_experiment, make_plan

HOST = HostName("h1")


@pytest.mark.parametrize("state", [State.RUNNING, State.FINISHED])
def test_a_job_has_the_shell_that_it_reports_also_after_its_end(state: State) -> None:
    plan = make_plan("train")
    plan = replace(plan, jobs=tuple(replace(job, shell=Shell.AUTO) for job in plan.jobs))
    experiment = make_experiment(4, plan)
    build, job = experiment.jobs
    assert job.shell is None, "only the job can find out"
    job = replace(job, host=HOST, state=state)
    experiment = replace(experiment, jobs=(build, job))
    key = experiment.key_of(job)
    for shell in (None, Shell.SH, None):
        container = ContainerObservation(key, "c", started=True, shell=shell)
        seen = Observation(START, {HOST: HostObservation(Capacity(1, 1024), containers={key: container})})
        noted = note_shells(experiment, seen)
        assert noted.jobs[1].shell is (shell or experiment.jobs[1].shell)
        experiment = noted
    assert make_next_attempt(experiment.jobs)[1].shell is Shell.SH


@pytest.mark.parametrize("shell", [Shell.BASH, Shell.SH])
def test_a_shell_that_was_chosen_is_in_the_record_from_the_beginning(shell: Shell) -> None:
    plan = make_plan("train")
    plan = replace(plan, jobs=tuple(replace(job, shell=shell) for job in plan.jobs))
    assert [job.shell for job in make_experiment(4, plan).jobs] == [None, shell]
