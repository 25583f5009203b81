"""What is free on a host, after the jobs that hold the rest."""

from __future__ import annotations

import pytest

from riseml.control.placement.free import FreeResources, free_after
from riseml.model import Capacity
from riseml.spec.config.types import Resources
from tests.unit.control.pools import on_h1


@pytest.mark.parametrize(
    ("need", "count"),
    [
        (Resources(2, 64), 4),
        (Resources(0.1, 64), 80),
        (Resources(0, 3000), 2),
        (Resources(0, 64, 1), 3),
        (Resources(9, 64), 0),
        (Resources(1, 9000), 0),
        (Resources(1, 64, 4), 0),
    ],
)
def test_free_resources_count_the_jobs_that_fit(need: Resources, count: int) -> None:
    free = FreeResources(8.0, 8192, ("a", "b", "c"))
    assert free.count_fits(need) == count
    assert free.count_fits(need, 1) == min(1, count)
    assert free.holds(need) == (count > 0)
    assert not free.without(need, count).holds(need)


def test_every_way_to_subtract_leaves_the_same() -> None:
    free = FreeResources(8.0, 8192, ("a", "b", "c"))
    need = Resources(2, 1024, 1)
    jobs = [on_h1(need, "a"), on_h1(need, "b")]
    left = FreeResources(4.0, 6144, ("c",))
    assert (
        free.without(need, 2)
        == free.without_jobs(jobs)
        == free_after(Capacity(8.0, 8192, ("a", "b", "c")), jobs)
        == left
    )


def test_a_job_takes_exactly_its_devices() -> None:
    assert FreeResources(8.0, 8192, ("a", "b", "c")).without_jobs([on_h1(Resources(1, 64, 1), "b")]).gpus == ("a", "c")
