"""Which hosts may get new jobs, and why others may not."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from riseml.base.names import HostName
from riseml.base.states import Network, State
from riseml.control.actions import StartJob
from riseml.control.placement.candidates import (
    HostExclusion,
    find_candidates,
    find_exclusions,
    find_record,
)
from riseml.model import ContainerObservation, Experiment, HostObservation
from riseml.spec.config.types import Resources
from tests.unit.control.pools import A100, GPU, H1, H2, ONE_JOB, gpu_site, look, ready, site
from tests.unit.control.simulation import START


def place_on_h1() -> Experiment:
    """Return an experiment whose job is to run on h1."""
    experiment = ready(1, ONE_JOB)
    jobs = (replace(job, host=H1, state=State.STARTING) for job in experiment.gang)
    return replace(experiment, jobs=tuple(jobs))


@pytest.mark.parametrize(
    ("host", "exclusion"),
    [
        (site(1), None),
        (site(1, taking=False), HostExclusion.DRAINED),
        (site(1, silent_since=START), HostExclusion.SILENT),
        (site(1, silent_since=START - timedelta(hours=1)), HostExclusion.LOST),
        (site(1, silent_since=START, taking=False), HostExclusion.SILENT),
    ],
)
def test_a_host_is_excluded_for_a_reason(host: HostObservation, exclusion: HostExclusion | None) -> None:
    assert find_exclusions({}, look(h1=host)).get(H1) is exclusion


@pytest.mark.parametrize(("attempt", "stale"), [(1, False), (2, True)])
def test_a_host_is_cleared_of_what_no_record_expects(attempt: int, *, stale: bool) -> None:
    experiment = place_on_h1()
    key = replace(experiment.key_of(experiment.gang[0]), attempt=attempt)
    container = ContainerObservation(key, "c", started=True)
    runs = look(h1=site(1, containers={key: container}), h2=site(1))
    starts = replace(look(h1=site(1), h2=site(1)), busy=frozenset({StartJob(H1, key)}))
    for seen in (runs, starts):
        expected = {H1: HostExclusion.STALE} if stale else {}
        assert find_exclusions({1: experiment}, seen) == expected


def test_the_record_of_a_container_is_on_its_host_and_of_its_attempt() -> None:
    experiment = place_on_h1()
    (job,) = experiment.gang
    key = experiment.key_of(job)
    assert find_record(experiment, key, H1) is job
    assert find_record(experiment, key, H2) is None
    assert find_record(experiment, replace(key, attempt=2), H1) is None


@pytest.mark.parametrize(
    ("network", "fields", "link"),
    [
        (Network.OVERLAY, {}, "s"),
        (Network.OVERLAY, {"manager": False}, None),
        (Network.OVERLAY, {"swarm": ""}, None),
        (Network.OVERLAY, {"isolated": False}, None),
        (Network.HOST, {"address": "192.0.2.1"}, "address"),
        (Network.HOST, {}, None),
        (Network.BRIDGE, {}, None),
    ],
)
def test_hosts_of_one_link_may_share_a_gang(network: Network, fields: dict[str, Any], link: str | None) -> None:
    seen = look(network, h1=site(1, **fields))
    assert find_candidates(seen)[H1].link == link
    assert find_candidates(replace(seen, shared_output=False))[H1].link is None
    assert find_candidates(seen, excluded=[H1]) == {}


def test_a_swarm_whose_managers_cannot_be_reached_is_no_link() -> None:
    seen = look(h1=site(1), h2=site(1, manager=False))
    assert {candidate.link for candidate in find_candidates(seen, unreachable=[H1]).values()} == {None}
    assert list(find_candidates(seen)) == [HostName("h1"), HostName("h2")]


@pytest.mark.parametrize(
    ("need", "accepts"),
    [
        (GPU, True),
        (replace(GPU, gpu="a100"), True),
        (replace(GPU, gpu="t4"), False),
        (Resources(labels=(("rack", "2"),)), True),
        (Resources(labels=(("rack", "2"), ("disk", "fast"))), False),
    ],
)
def test_a_candidate_accepts_jobs_that_want_its_kind(need: Resources, *, accepts: bool) -> None:
    host = replace(gpu_site(A100), labels={"rack": "2"})
    assert find_candidates(look(h1=host))[H1].accepts(need) is accepts
