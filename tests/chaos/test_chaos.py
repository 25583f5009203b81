"""The part of `make chaos` that runs with every `make test`: each kind of fault once, on each of its executors."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from riseml.base.faultpoints import Point
from tests.chaos import (
    builds,
    calls,
    capsules,
    clusters,
    crashes,
    engines,
    harms,
    homes,
    report_crashes,
    searches,
    stores,
    takeovers,
)
from tests.chaos.ledger import Tally
from tests.chaos.scenes import make_good_scene, make_retried_scene
from tests.chaos.sites import Site
from tests.support.root import need_root

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning")
"""httpx leaves a socket open when the server dies between two of its steps; `collect` closes it in the same test."""


def check_tally(tally: Tally, least: int = 1) -> None:
    """Assert that nothing is wrong and that at least `least` faults were injected."""
    assert tally.notes == ()
    assert tally.clean, tally
    assert tally.injected >= least, tally


@pytest.mark.parametrize(("before", "after"), [(Point.SAVING, Point.SAVED), (Point.ACTING, Point.ACTED)])
def test_the_server_dies_around_every_step(site: Site, before: Point, after: Point) -> None:
    check_tally(
        crashes.run_with_crashes(site, make_good_scene(), itertools.cycle((f"{before.value}:1", f"{after.value}:1"))), 8
    )


def test_the_server_dies_at_each_named_point_in_turn(site: Site) -> None:
    check_tally(crashes.crash_through_one_life(site), 12)


def test_an_environment_is_made_while_no_server_runs(site: Site) -> None:
    check_tally(builds.follow_left_build(site), 2)
    check_tally(builds.kill_left_build(site))


def test_the_server_dies_at_each_step_of_a_search(process_site: Site) -> None:
    orders = [f"{point.value}:1" for point in searches.SEARCH_POINTS]
    check_tally(searches.run_search_with_crashes(process_site, orders), 5)


def test_the_server_dies_while_trials_get_the_files_of_their_parents(site: Site) -> None:
    copying, copied = Point.INHERITING.value, Point.INHERITED.value
    orders = [f"{copying}:2", f"{copied}:1", f"{copying}:4", f"{Point.ASKED.value}:1", f"{copied}:2"]
    check_tally(searches.run_population_with_crashes(site, orders), 5)


def test_the_server_dies_while_it_writes_capsules(process_site: Site) -> None:
    check_tally(capsules.run_with_crashes_at(process_site, *capsules.CAPSULE_POINTS), 4)


def test_the_server_dies_while_it_saves_and_restores_outputs(process_site: Site) -> None:
    check_tally(stores.save_with_crashes(process_site, *stores.SAVE_POINTS), 4)
    check_tally(stores.restore_with_crashes(process_site, *stores.RESTORE_POINTS), 3)


def test_the_server_reads_a_log_whose_last_record_is_torn(process_site: Site) -> None:
    check_tally(crashes.tear_log_record(process_site), 3)


def test_the_server_dies_around_the_counts_of_reports(site: Site) -> None:
    check_tally(report_crashes.kill_around_counts(site), 3)


def test_the_server_dies_around_every_call_to_the_engine(docker_site: Site) -> None:
    check_tally(calls.run_through_proxy(docker_site, make_good_scene(), calls.make_kill_rules), 15)


def test_calls_to_the_engine_are_cut_and_answers_are_lost(docker_site: Site) -> None:
    check_tally(calls.run_through_proxy(docker_site, make_good_scene(), calls.make_cut_rules), 16)


def test_the_engine_is_late_with_its_answers_to_a_server_that_has_just_started(docker_site: Site) -> None:
    check_tally(calls.inspect_late_after_death(docker_site), 2)


def test_the_log_stream_is_cut_at_every_piece(docker_site: Site) -> None:
    check_tally(calls.cut_stream(r"GET .*/logs", 25)(docker_site), 20)


def test_something_else_removes_a_job(site: Site) -> None:
    check_tally(harms.remove_running_job(site, make_retried_scene(), "worker.1"))


def test_copies_of_a_home_touch_nothing_of_the_original(site: Site) -> None:
    check_tally(homes.use_copies(site), 4)


def test_an_experiment_that_has_ended_never_runs_again_whatever_the_store_lost(site: Site) -> None:
    check_tally(homes.lose_ends(site), 3)


@pytest.mark.postgres
def test_standbys_take_over_from_servers_that_are_killed_cut_off_and_stopped(site: Site) -> None:
    check_tally(takeovers.lose_servers_in_turn(site), 3)


@pytest.mark.postgres
def test_a_server_that_goes_on_after_a_take_over_changes_nothing(process_site: Site) -> None:
    check_tally(takeovers.stop_at_points(process_site, *takeovers.SHORT_STOPS), 3)


@pytest.mark.parametrize("inflict", [harms.turn_clock, harms.fill_output_before_start])
def test_a_fault_on_processes(process_site: Site, inflict: Callable[[Site], Tally]) -> None:
    check_tally(inflict(process_site))


@pytest.mark.parametrize(
    "inflict",
    [
        harms.remove_network_before_start,
        harms.hold_network,
        harms.exceed_memory,
        harms.fill_store,
        harms.kill_paused_jobs,
    ],
)
def test_a_fault_on_the_engine(docker_site: Site, inflict: Callable[[Site], Tally]) -> None:
    check_tally(inflict(docker_site))


def test_an_engine_is_killed_and_comes_back(docker_site: Site) -> None:
    check_tally(engines.kill_and_restart_engine(docker_site), 4)


@pytest.mark.parametrize("inflict", [clusters.lose_answer, clusters.preempt_job])
def test_a_fault_on_a_cluster(process_site: Site, inflict: Callable[[Site], Tally]) -> None:
    need_root("a private Slurm cluster needs root: it makes network namespaces")
    check_tally(inflict(process_site), 2)
