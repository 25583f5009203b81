"""What a pass of the loop saw: which hosts count as lost, and which are not known yet."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from riseml.control.observation import Observation
from riseml.model import ContainerObservation
from tests.unit.control.pools import H1, H2, ONE_JOB, ready, site
from tests.unit.control.simulation import START


@pytest.mark.parametrize(("seconds", "lost"), [(None, False), (0, False), (299, False), (300, True)])
def test_a_host_is_lost_after_some_silence(seconds: float | None, *, lost: bool) -> None:
    since = None if seconds is None else START - timedelta(seconds=seconds)
    assert Observation(START, {}).is_lost(replace(site(1), silent_since=since)) is lost


@pytest.mark.parametrize(("seconds", "unknown"), [(299, True), (300, False)])
def test_a_host_that_never_answered_is_unknown_until_it_is_lost(seconds: float, *, unknown: bool) -> None:
    observation = Observation(START, {}, unseen={H1: START - timedelta(seconds=seconds)})
    assert observation.is_unknown(H1) is unknown
    assert not observation.is_unknown(H2)


def test_the_machine_of_a_job_is_that_of_its_container() -> None:
    experiment = ready(1, ONE_JOB)
    (job,) = experiment.gang
    placed = replace(job, host=H1)
    key = experiment.key_of(job)
    container = ContainerObservation(key, "c", started=True, node="n7")
    observation = Observation(START, {H1: site(1, containers={key: container})})
    assert observation.find_node(experiment, placed) == "n7"
    assert observation.find_node(experiment, job) is None
    assert observation.find_node(experiment, replace(job, host=H2)) is None
