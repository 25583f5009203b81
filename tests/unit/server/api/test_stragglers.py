"""The warnings about jobs that slow others down, as each client sees them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from riseml.base.states import State
from riseml.results.stragglers import StragglerKind
from riseml.server.api.routes.sample_routes import SeenTrends
from tests.unit.results.live_samples import make_sample


def test_several_looks_tell_which_job_is_behind() -> None:
    ticks: Iterator[int] = count(0, 10)
    seen = SeenTrends(lambda: float(next(ticks)))
    found = []
    for at in range(4):
        counted = {"4.master": 100 * at, "4.worker.1": 90 * at, "4.worker.2": 20 * at}
        samples = [make_sample(name, state=State.RUNNING.value, lines=lines) for name, lines in counted.items()]
        found.append([one.job for one in seen.find_warnings(4, samples)])
    assert found == [[], [], ["4.worker.2"], ["4.worker.2"]], "two looks of ten seconds are too few"
    assert seen.find_warnings(5, samples) == [], "another experiment has its own trends"


def test_looks_at_the_interval_of_a_page_report_a_full_link() -> None:
    """The page looks every 15 seconds, and the server keeps a sample every ten."""
    ticks: Iterator[int] = count(0, 15)
    seen = SeenTrends(lambda: float(next(ticks)))
    found = []
    for rate in (118e6, 118e6, 120e6, 60e6, 118e6):
        ps = make_sample("4.ps.1", host="gpu1", net_out=rate)
        found.append(
            [one.kind for one in seen.find_warnings(4, [ps, make_sample("4.master", host="gpu2", net_out=0.0)])]
        )
    assert found == [[], [], [StragglerKind.FULL_LINK], [], []]


def test_looks_at_few_experiments_are_remembered() -> None:
    seen = SeenTrends(lambda: 0.0)
    for experiment in range(100):
        seen.find_warnings(experiment, [])
    assert len(seen._trends) == 32
