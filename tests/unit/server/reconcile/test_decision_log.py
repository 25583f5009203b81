"""Decisions and actions as lines of the log: each names the experiment, the job, the host and the reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from riseml.base.names import HostName, JobName
from riseml.base.states import JobDuty, Reason, State
from riseml.control.actions import (
    Action,
    CancelImage,
    CopyImage,
    EnsureImage,
    PrepareHost,
    ReleaseHost,
    RemoveJob,
    Signal,
    StartJob,
    StopJob,
)
from riseml.control.observation import Observation
from riseml.model import Experiment, Job, JobKey, Verdict, World
from riseml.server.reconcile.decision_log import describe_done, describe_failure, describe_hosts, describe_pass
from riseml.spec.config.types import Resources
from tests.unit.control.pools import look, ready, site
from tests.unit.control.simulation import START

GPU1, GPU2 = HostName("gpu1"), HostName("gpu2")
GANG = {name: Resources(cpus=1, mem=64) for name in ("master", "worker.1", "worker.2")}
KEY = JobKey(4, JobName("master"), 1)
SECRET = "canary-8f3a1c-secret"


def lines(before: Experiment, after: Experiment, *others: Experiment) -> list[str]:
    return [line.text for line in describe_pass(World((*others, before)), [(before, after)])]


def edit(experiment: Experiment, jobs: Mapping[str, Mapping[str, object]], **changes: object) -> Experiment:
    """The experiment with other values, of some of its jobs too."""
    # Both ignores: mypy cannot see that the names of a mapping are fields.
    edited = tuple(replace(job, **jobs.get(job.name, {})) for job in experiment.jobs)  # type: ignore[arg-type]  # a test names fields
    return replace(experiment, jobs=edited, **changes)  # type: ignore[arg-type]  # a test names fields


def place(experiment: Experiment, *hosts: HostName) -> Experiment:
    names = [str(job.name) for job in experiment.gang]
    jobs = {name: {"host": host, "state": State.STARTING} for name, host in zip(names, hosts, strict=True)}
    return edit(experiment, jobs, placed_at=START, state=State.STARTING, reason=Reason.PLACED)


@pytest.fixture
def waiting() -> Experiment:
    return ready(4, GANG)


@pytest.fixture
def running(waiting: Experiment) -> Experiment:
    placed = place(waiting, GPU1, GPU1, GPU2)
    jobs = {str(job.name): {"state": State.RUNNING} for job in placed.gang}
    return edit(placed, jobs, state=State.RUNNING, reason=Reason.RUNNING)


def test_a_pass_without_a_change_has_no_line(running: Experiment) -> None:
    assert describe_pass(World((running,)), []) == []
    assert lines(running, replace(running, message="another message")) == []


def test_a_placement_names_the_hosts_of_all_jobs(waiting: Experiment) -> None:
    assert lines(waiting, place(waiting, GPU1, GPU1, GPU2)) == [
        "4 placed: master, worker.1 on gpu1; worker.2 on gpu2 (first in the queue)"
    ]


def test_a_placement_names_those_that_were_ahead_and_still_wait(waiting: Experiment) -> None:
    first = replace(ready(3, GANG), state=State.PENDING, reason=Reason.NEXT)
    assert lines(waiting, place(waiting, GPU2, GPU2, GPU2), first) == [
        "4 placed: master, worker.1, worker.2 on gpu2 (fits beside what is kept for 3)"
    ]


def test_a_waiting_experiment_has_a_reason_and_a_running_one_has_none(waiting: Experiment, running: Experiment) -> None:
    created = replace(waiting, state=State.CREATED, reason=Reason.SUBMITTED)
    pending = replace(waiting, state=State.PENDING, reason=Reason.NO_ROOM)
    assert lines(created, pending) == ["4 PENDING: Waiting for room in the pool"]
    assert lines(pending, replace(pending, reason=Reason.NEXT)) == ["4 PENDING: Next in the queue: room is kept for it"]
    assert lines(place(waiting, GPU1, GPU1, GPU1), running) == ["4 RUNNING"]


def test_an_end_names_the_job_that_decided_and_those_that_are_stopped(running: Experiment) -> None:
    failed = {"state": State.FAILED, "reason": Reason.EXIT_CODE, "exit_code": 3}
    stopped = {"ending": Reason.CASCADE}
    verdict = Verdict(State.FAILED, Reason.EXIT_CODE, START, JobName("worker.1"))
    judged = edit(running, {"worker.1": failed, "master": stopped, "worker.2": stopped}, verdict=verdict)
    assert lines(running, judged) == [
        "4.worker.1 a1 FAILED on gpu1: exit code 3",
        "4 stops master, worker.2: Stopped: this attempt of the experiment failed",
        "4 decided: it ends as FAILED: worker.1 ended with exit code 3",
    ]
    killed = {"state": State.KILLED, "reason": Reason.CASCADE, "exit_code": 143}
    ended = edit(
        judged, {"master": killed, "worker.2": killed}, state=State.FAILED, reason=Reason.EXIT_CODE, closed=True
    )
    assert lines(judged, ended) == [
        "4.master a1 KILLED on gpu1: exit code 143 (Stopped: this attempt of the experiment failed)",
        "4.worker.2 a1 KILLED on gpu2: exit code 143 (Stopped: this attempt of the experiment failed)",
        "4 FAILED: worker.1 ended with exit code 3",
        "4 closed: nothing of it is left on any host",
    ]


def test_a_good_end_in_one_pass_is_one_line_of_the_experiment(running: Experiment) -> None:
    done = {"state": State.FINISHED, "reason": Reason.COMPLETED, "exit_code": 0}
    verdict = Verdict(State.FINISHED, Reason.COMPLETED, START, JobName("master"))
    ended = edit(running, {"master": done}, verdict=verdict, state=State.FINISHED, reason=Reason.COMPLETED)
    assert lines(running, ended) == [
        "4.master a1 FINISHED on gpu1: exit code 0",
        "4 FINISHED: master ended with exit code 0",
    ]


def test_a_kill_says_that_a_user_wanted_it(running: Experiment) -> None:
    stopped = {str(job.name): {"ending": Reason.KILLED_BY_USER} for job in running.gang}
    verdict = Verdict(State.KILLED, Reason.KILLED_BY_USER, START)
    assert lines(running, edit(running, stopped, verdict=verdict)) == [
        "4 stops master, worker.1, worker.2: Killed by a user",
        "4 decided: it ends as KILLED: Killed by a user",
    ]


def test_another_attempt_names_its_jobs(running: Experiment) -> None:
    again = {str(job.name): {"attempt": 2, "state": State.PENDING, "host": None} for job in running.gang}
    after = edit(running, again, state=State.PENDING, reason=Reason.RETRY, placed_at=None)
    assert lines(running, after) == ["4 attempt 2: master, worker.1, worker.2", "4 PENDING: Another attempt follows"]


def test_the_member_of_a_set_has_its_own_name(waiting: Experiment) -> None:
    member = replace(waiting, number=144, sub=2, set_id=1)
    (line,) = describe_pass(World((member,)), [(member, place(member, GPU1, GPU1, GPU1))])
    assert line.text.startswith("144.2 placed: ")
    assert line.facts() == {"experiment": "144.2", "host": "gpu1", "state": "STARTING", "reason": "PLACED"}


def test_no_value_of_the_environment_is_in_any_line(running: Experiment) -> None:
    secret = replace(running, environment=(("TOKEN", SECRET),))
    ended = edit(secret, {"master": {"state": State.FAILED, "reason": Reason.START_FAILED}}, state=State.FAILED)
    found = [*describe_pass(World((secret,)), [(secret, ended)]), describe_done(StartJob(GPU1, KEY), secret, 0.1)]
    assert SECRET not in repr(found)


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (StartJob(GPU1, KEY), "4.master a1 started on gpu1 in 0.21 s"),
        (StopJob(GPU1, KEY, Signal.TERM), "4.master a1 got SIGTERM on gpu1 in 0.21 s"),
        (RemoveJob(GPU1, KEY), "4.master a1 removed from gpu1 in 0.21 s"),
        (EnsureImage(GPU1, 4, "base"), "4 environment base made on gpu1 in 0.21 s"),
        (CopyImage(GPU2, 4, "base", GPU1), "4 environment base copied from gpu1 to gpu2 in 0.21 s"),
        (CancelImage(GPU1, 4, "base"), "4 environment base cancelled on gpu1 in 0.21 s"),
        (PrepareHost(GPU1, 4, "10.213.0.0/26"), "4 prepared on gpu1 with network 10.213.0.0/26 in 0.21 s"),
        (ReleaseHost(GPU1, 4), "4 released on gpu1 in 0.21 s"),
    ],
)
def test_an_action_says_what_it_did_where_and_how_long_it_took(running: Experiment, action: Action, text: str) -> None:
    line = describe_done(action, running, 0.2149)
    assert (line.text, line.host, line.facts()["seconds"]) == (text, action.host, 0.215)


def test_an_action_for_a_closed_experiment_names_its_record() -> None:
    assert describe_done(ReleaseHost(GPU1, 17), None, 1).text == "#17 released on gpu1 in 1.00 s"


def test_an_action_that_failed_says_why(running: Experiment) -> None:
    line = describe_failure(StartJob(GPU1, KEY), running, "no such image", 0.5)
    assert line.text == "start 4.master on gpu1 failed after 0.50 s: no such image"
    assert line.facts() == {"experiment": "4", "job": "master", "attempt": 1, "host": "gpu1", "seconds": 0.5}


def test_a_host_is_named_when_it_answers_first_and_again() -> None:
    first = look(gpu1=site(8))
    silent = {GPU1: replace(site(8), silent_since=START - timedelta(seconds=12))}
    (line,) = describe_hosts({}, first)
    assert line.text.startswith("host gpu1 answers: 8 cores, ")
    assert describe_hosts(first.hosts, first) == []
    assert [line.text for line in describe_hosts(silent, first)] == ["host gpu1 answers again after 12 s"]
    assert describe_hosts(first.hosts, Observation(START, silent)) == []


def test_a_build_job_without_a_host_ends_with_its_reason(waiting: Experiment) -> None:
    build = Job(JobName("build"), JobDuty.PREPARES, Resources(cpus=0, mem=0))
    before = replace(waiting, jobs=(build, *waiting.gang))
    after = edit(before, {"build": {"state": State.FINISHED, "reason": Reason.CACHED, "exit_code": 0}})
    assert lines(before, after) == ["4.build a1 FINISHED: The environment is already there"]
