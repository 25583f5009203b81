"""The part of `make chaos` that runs with every `make test`: each kind of harm once, on each executor that has it."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from riseml.faultpoints import Point
from tests.chaos import calls, crashes, engines, harms
from tests.chaos.ledger import Tally
from tests.chaos.scenes import again, good
from tests.chaos.sites import Site

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning")
"""httpx leaves a socket open when the server dies between two of its steps; `collect` sees to it in the same test."""


def check(tally: Tally, least: int = 1) -> None:
    """Nothing is wrong, and at least so many harms were done."""
    assert tally.notes == ()
    assert tally.clean, tally
    assert tally.injected >= least, tally


@pytest.mark.parametrize(("before", "after"), [(Point.SAVING, Point.SAVED), (Point.ACTING, Point.ACTED)])
def test_the_server_dies_around_every_step(site: Site, before: Point, after: Point) -> None:
    check(crashes.survive(site, good(), itertools.cycle((f"{before.value}:1", f"{after.value}:1"))), 8)


def test_the_server_dies_at_one_named_point_after_the_other(site: Site) -> None:
    check(crashes.survive(site, crashes.built(), crashes.ONE_LIFE), 12)


def test_a_log_record_half_written(process_site: Site) -> None:
    check(crashes.tear(process_site), 3)


def test_the_server_dies_around_every_call_to_the_engine(docker_site: Site) -> None:
    check(calls.through(docker_site, good(), calls.kill_around), 15)


def test_calls_are_cut_and_answers_lost(docker_site: Site) -> None:
    check(calls.through(docker_site, good(), calls.cut_around), 16)


def test_the_log_stream_is_cut_at_every_piece(docker_site: Site) -> None:
    check(calls.cut_stream(r"GET .*/logs", 25)(docker_site), 20)


def test_a_job_is_removed_behind_our_back(site: Site) -> None:
    check(harms.removed(site, again(), "worker.1"))


@pytest.mark.parametrize("inflict", [harms.clock, harms.output_never])
def test_harm_without_an_engine(process_site: Site, inflict: Callable[[Site], Tally]) -> None:
    check(inflict(process_site))


@pytest.mark.parametrize(
    "inflict", [harms.network_gone, harms.network_held, harms.memory, harms.store_full, harms.paused_and_killed]
)
def test_harm_on_the_engine(docker_site: Site, inflict: Callable[[Site], Tally]) -> None:
    check(inflict(docker_site))


def test_an_engine_is_killed_and_comes_back(docker_site: Site) -> None:
    check(engines.killed_and_back(docker_site), 4)
