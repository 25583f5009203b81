"""Which job slows the others down: the worker furthest behind, and a parameter server whose link is full."""

from __future__ import annotations

import pytest

from riseml import wire
from riseml.analysis.stragglers import find_stragglers
from riseml.analysis.trends import Trends
from tests.unit.analysis.live_samples import make_sample, watch

PROGRESS = {"job": "master", "done": 1, "of": 9, "unit": "step", "fraction": 0.1, "remaining": None, "rounds": 0}
GANG = ("4.master", "4.worker.1", "4.worker.2")


@pytest.mark.parametrize(
    ("uses", "said"),
    [
        ([{"lines": 10}, {"lines": 10}, {"lines": 3}], "4.worker.2 is furthest behind: it prints 3/s lines"),
        ([{"lines": 10}, {"lines": 9}, {"lines": 8}], None),
        ([{"cpu": 100}, {"cpu": 90}, {"cpu": 20}], "4.worker.2 uses the least processor time: 0.20 cores, the median"),
        ([{"cpu": 100}, {"cpu": 90}, {"cpu": 60}], None),
        ([{"cpu": 4}, {"cpu": 4}, {"cpu": 0}], None),
    ],
)
def test_the_worker_furthest_behind(uses: list[dict[str, float]], said: str | None) -> None:
    remarks = find_stragglers(*watch(dict(zip(GANG, uses, strict=True))))
    assert [remark.job for remark in remarks] == ([] if said is None else ["4.worker.2"])
    assert said is None or remarks[0].text.startswith(said)


@pytest.mark.parametrize(
    ("rates", "lines", "told"),
    [
        (
            (10.0, 9.9, 5.0),
            (1, 9, 9),
            "4.worker.2 is furthest behind: it does 5/s of steps, the median of 3 jobs 9.9/s",
        ),
        ((10.0, 9.9, 9.0), (9, 9, 1), None),
        ((10.0, 9.9, None), (9, 9, 1), "4.worker.2 is furthest behind: it prints 1/s lines, the median of 3 jobs 9/s"),
    ],
)
def test_jobs_that_tell_their_rate_are_compared_by_it(
    rates: tuple[float | None, ...], lines: tuple[int, ...], told: str | None
) -> None:
    trends = Trends()
    samples: list[wire.SampleView] = []
    for now in range(0, 60, 2):
        samples = [
            make_sample(job, lines=count * now, progress=PROGRESS | {"per_second": rate})
            for job, rate, count in zip(GANG, rates, lines, strict=True)
        ]
        trends.add_samples(samples, float(now))
    assert [warning.text for warning in find_stragglers(samples, trends)] == ([] if told is None else [told])


def test_nothing_is_said_of_two_jobs_of_the_first_seconds_or_of_a_ps() -> None:
    uneven = {"4.master": {"lines": 10.0}, "4.worker.1": {"lines": 1.0}}
    assert find_stragglers(*watch(uneven)) == []
    assert find_stragglers(*watch(uneven | {"4.ps.1": {"lines": 0.1}})) == []
    assert find_stragglers(*watch(uneven | {"5.worker.1": {"lines": 10.0}})) == []
    assert find_stragglers(*watch(uneven | {"4.worker.2": {"lines": 10.0}}, seconds=10)) == []


@pytest.mark.parametrize(("rate", "hosts", "full"), [(118e6, 2, True), (60e6, 2, False), (118e6, 1, False)])
def test_a_ps_at_its_line_rate(rate: float, hosts: int, *, full: bool) -> None:
    trends, samples = Trends(), []
    for now in range(0, 40, 2):
        ps = make_sample("4.ps.1", host="gpu1", net_out=rate)
        samples = [ps, make_sample("4.master", host=f"gpu{hosts}", net_out=0.0)]
        trends.add_samples(samples, float(now))
    said = [remark.text for remark in find_stragglers(samples, trends)]
    assert said == (["4.ps.1 sends 113 MiB/s, as much as a link of 1 Gbit/s carries"] if full else [])
