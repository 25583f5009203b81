"""The time of an experiment is that of its jobs, whatever the server did meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.base.names import HostName
from riseml.base.states import TERMINAL, Reason, State
from riseml.control.times import HostClocks, date_end
from riseml.model import Capacity, ContainerObservation
from riseml.server.api.views.record_views import count_run_seconds
from riseml.spec.config.types import Retry, RetryOn
from tests.unit.control.simulation import (
    LOST_AFTER,
    Simulation,
    change_policy,
    job_of,
    make_experiment,
    make_plan,
    make_simulation,
)

GANG = ("master", "worker.1", "ps.1")
H1 = HostName("h1")
HOUR = timedelta(hours=1)
PASSES = 40  # seconds in which the server may be away


@dataclass(frozen=True)
class Script:
    """What happens to one experiment; the server sees it or not."""

    ends: Mapping[str, Sequence[tuple[int, int]]]  # job -> (seconds, exit code) of each attempt; else it runs on
    max_duration: float | None = None
    ahead: timedelta = timedelta()  # how far the clock of the host is ahead
    measures: bool = False  # the host measures by a monotonic clock
    jumps: Mapping[int, timedelta] = field(default_factory=dict)  # second -> by how much the time of day is set


def play(script: Script, away: frozenset[int] = frozenset()) -> Simulation:
    """Play a script with a server that is not there in these seconds, and then stays until the experiment has ended."""
    simulation = make_simulation(Capacity(8, 8192))
    (host,) = simulation.hosts.values()
    host.ahead = script.ahead
    host.measures = script.measures
    plan = make_plan(*script.ends, retry=Retry(max=2, on=frozenset({RetryOn.EXIT_CODES})))
    simulation.submit(make_experiment(1, change_policy(plan, max_duration=script.max_duration)))
    simulation.settle(5)
    assert simulation.state(1) is State.RUNNING
    for second in range(10 * PASSES):
        if simulation.state(1) in TERMINAL:
            break
        simulation.now += script.jumps.get(second, timedelta())
        if second in away:
            simulation.pass_time(1)
        else:
            if second - 1 in away:
                simulation.restart()
            simulation.turn()
        for key, container in list(host.containers.items()):
            attempts = script.ends[key.job]
            lasts, code = attempts[key.attempt - 1] if key.attempt <= len(attempts) else (10 * PASSES, 0)
            if container.running and simulation.elapsed - host.began[key] >= lasts:
                simulation.exit(1, key.job, code)
    assert simulation.state(1) in TERMINAL
    return simulation


def measure(simulation: Simulation) -> float:
    """Return the TIME of the experiment that is printed."""
    seconds = count_run_seconds(simulation.stored[1], simulation.now)
    assert seconds is not None
    return seconds


ABSENCES = st.lists(st.tuples(st.integers(0, PASSES), st.integers(1, 30)), max_size=3).map(
    lambda spans: frozenset(second for start, length in spans for second in range(start, start + length))
)
ENDS = st.tuples(st.integers(2, 20), st.sampled_from([0, 0, 3]))
SCRIPTS = st.builds(
    Script,
    ends=st.one_of(
        st.fixed_dictionaries({"train": st.tuples(ENDS, ENDS, ENDS)}),
        st.fixed_dictionaries({"master": st.tuples(ENDS, ENDS, ENDS), "ps.1": st.just(())}),
    ),
    ahead=st.sampled_from([timedelta(), HOUR, -HOUR, timedelta(seconds=7), timedelta(seconds=-7)]),
    measures=st.booleans(),
)


@given(script=SCRIPTS, away=ABSENCES)
def test_no_absence_of_the_server_changes_the_time(script: Script, away: frozenset[int]) -> None:
    expected = 0
    for lasts, code in script.ends.get("train") or script.ends["master"]:
        expected += lasts
        if code == 0:
            break
    simulation = play(script, away)
    assert abs(measure(simulation) - expected) <= 1
    assert measure(simulation) == pytest.approx(measure(play(script)), abs=1)
    record = simulation.stored[1]
    assert record.waits_since is None


@given(
    ends=st.fixed_dictionaries({name: st.integers(2, 30) for name in ("master", "worker.1", "worker.2")}),
    away=ABSENCES,
)
def test_helpers_that_riseml_ends_late_count_until_their_grace_is_over(
    ends: dict[str, int], away: frozenset[int]
) -> None:
    """A helper has ten seconds after the master. One that ends by itself has its own end."""
    simulation = play(Script({**{name: [(end, 0)] for name, end in ends.items()}, "ps.1": []}), away)
    least = max(min(end, ends["master"] + 10) for end in ends.values())
    assert least - 1 <= measure(simulation) <= max(ends.values()) + 1


@given(lasts=st.integers(2, 30), away=ABSENCES)
def test_jobs_that_run_on_after_a_failure_while_nobody_ends_them_do_not_count(lasts: int, away: frozenset[int]) -> None:
    script = Script({"master": [(lasts, 3)] * 3, "worker.1": [], "ps.1": []})
    assert abs(measure(play(script, away)) - 3 * lasts) <= 2


@given(
    lasts=st.integers(2, 50),
    limit=st.integers(5, 45),
    away=ABSENCES,
    ahead=st.sampled_from([timedelta(), HOUR, -HOUR]),
)
def test_only_what_ran_past_its_limit_is_too_late(
    lasts: int, limit: int, away: frozenset[int], ahead: timedelta
) -> None:
    simulation = play(Script({"train": [(lasts, 0)]}, limit + 0.5, ahead), away)
    record = simulation.stored[1]
    assert (record.state is State.FINISHED) == (lasts <= limit)
    assert record.reason is (Reason.COMPLETED if lasts <= limit else Reason.MAX_DURATION)
    assert measure(simulation) <= max(limit + 1, *away, 0) + 20


@given(at=st.integers(0, 15), jump=st.sampled_from([HOUR, -HOUR]), away=ABSENCES, retried=st.booleans())
def test_a_clock_that_is_set_changes_no_time_where_the_host_measures_it(
    at: int, jump: timedelta, away: frozenset[int], *, retried: bool
) -> None:
    ends = [(8, 3), (12, 0)] if retried else [(20, 0)]
    simulation = play(Script({"train": ends}, 40.5, measures=True, jumps={at: jump}), away)
    assert simulation.stored[1].reason is Reason.COMPLETED
    assert abs(measure(simulation) - 20) <= 1


def test_a_clock_that_goes_back_gives_no_negative_time() -> None:
    simulation = play(Script({"train": [(20, 0)]}, jumps={5: -HOUR}))
    record = simulation.stored[1]
    assert measure(simulation) >= 0
    assert record.started_at is not None
    assert record.ended_at is not None
    assert record.ended_at >= record.started_at


def test_a_retry_that_waits_for_its_place_takes_no_time() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    simulation.submit(make_experiment(1, make_plan("train", retry=Retry(max=1), max_duration=60.0)))
    simulation.settle(5)
    simulation.pass_time(10)
    simulation.exit(1, "train", 3)
    simulation.turn()
    waiting = simulation.stored[1]
    simulation.absent.add(H1)
    simulation.settle(3, seconds=1000)
    assert simulation.state(1) not in TERMINAL, "a wait is no run"
    assert waiting.waits_since is not None
    assert count_run_seconds(simulation.stored[1], simulation.now) == pytest.approx(12, abs=2)
    simulation.kill(1)
    simulation.settle(3)
    assert simulation.stored[1].ended_at == waiting.waits_since
    assert measure(simulation) == pytest.approx(12, abs=2)


def test_an_experiment_that_never_started_has_no_time() -> None:
    simulation = make_simulation(Capacity(0.01, 1))
    simulation.submit(make_experiment(1, make_plan("train")))
    simulation.settle(3)
    simulation.kill(1)
    simulation.settle(3)
    record = simulation.stored[1]
    assert (record.started_at, count_run_seconds(record, simulation.now)) == (None, None)
    assert record.ended_at is not None


def test_a_lost_host_ends_its_jobs_when_it_was_last_heard() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    simulation.submit(make_experiment(1, make_plan("train")))
    simulation.settle(5)
    simulation.pass_time(20)
    silent = simulation.now + timedelta(seconds=1)
    simulation.hosts[H1].faults.silent = True
    simulation.settle(5, seconds=1)
    simulation.settle(5, seconds=LOST_AFTER / 2)
    record = simulation.stored[1]
    assert (record.reason, record.ended_at) == (Reason.HOST_LOST, silent)


@pytest.mark.parametrize("gone", ["host", "container", "end"])
def test_a_job_whose_end_nobody_saw_ends_with_its_last_sign(gone: str) -> None:
    """The server comes back after an hour: the host is not there, or the container, or what was written of its end."""
    simulation = make_simulation(Capacity(8, 8192))
    simulation.submit(make_experiment(1, make_plan("train")))
    simulation.settle(5)
    ((key, container),) = simulation.hosts[H1].containers.items()
    sign = simulation.now + timedelta(seconds=30)
    simulation.last_signs = {key: sign}
    simulation.pass_time(3600)
    simulation.restart()
    if gone == "host":
        simulation.absent.add(H1)
    elif gone == "container":
        simulation.hosts[H1].containers.clear()
    else:
        simulation.hosts[H1].containers[key] = replace(container, exit_code=137, last_sign=sign - HOUR)
    simulation.settle(6, seconds=LOST_AFTER)
    record = simulation.stored[1]
    assert record.state is State.FAILED
    assert record.ended_at == sign


def test_the_last_trace_on_the_host_counts_when_it_is_the_later_one() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    simulation.submit(make_experiment(1, make_plan("train")))
    simulation.settle(5)
    record = simulation.stored[1]
    job = job_of(simulation, 1, "train")
    key = record.key_of(job)
    simulation.pass_time(3600)
    trace = simulation.now - timedelta(seconds=60)
    ended = ContainerObservation(key, "c", started=True, exit_code=137, last_sign=trace)
    seen = replace(simulation.observe(), last_signs={key: trace - HOUR / 2})
    assert date_end(job, ended, HostClocks(record, seen)).ended_at == trace
    seen = replace(seen, last_signs={})
    assert date_end(job, ended, HostClocks(record, seen)).ended_at == simulation.now, "the server was there until now"


def test_a_limit_waits_for_a_host_that_does_not_answer_yet() -> None:
    """The server comes back after the limit; the job has ended in time, on a host that is slow to answer."""
    simulation = make_simulation(Capacity(8, 8192))
    simulation.submit(make_experiment(1, make_plan("train", max_duration=60.0)))
    simulation.settle(5)
    simulation.pass_time(10)
    simulation.exit(1, "train", 0)
    simulation.pass_time(600)
    simulation.restart()
    simulation.hosts[H1].faults.silent = True
    simulation.settle(5)
    assert simulation.state(1) is State.RUNNING
    simulation.hosts[H1].faults.silent = False
    simulation.settle(5)
    assert simulation.state(1) is State.FINISHED


def test_the_jobs_keep_the_times_of_their_host() -> None:
    """Their lines have these times, too."""
    simulation = play(Script({"train": [(20, 0)]}, ahead=HOUR), frozenset(range(10, 40)))
    job = job_of(simulation, 1, "train")
    assert job.started_at is not None
    assert job.ended_at is not None
    assert job.begun_at is not None
    assert job.ended_at - job.started_at == timedelta(seconds=20)
    assert job.started_at - job.begun_at == pytest.approx(HOUR, abs=timedelta(seconds=2))
    assert simulation.stored[1].started_at == job.begun_at


@pytest.mark.parametrize("ahead", [HOUR, -HOUR, timedelta(seconds=2), timedelta(seconds=-2)])
def test_of_two_ends_without_a_server_the_first_one_decides_whatever_the_clock_of_the_host(ahead: timedelta) -> None:
    script = Script({"master": [(12, 3)] * 3, "worker.1": [(10, 4)] * 3}, ahead=ahead)
    record = play(script, frozenset(range(5, 40))).stored[1]
    assert record.verdict is not None
    assert record.verdict.job == "worker.1"
