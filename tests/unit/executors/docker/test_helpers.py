"""The helper containers of a server: each is found again by its server, and none outlives its use."""

from __future__ import annotations

import threading

import pytest
import requests

from riseml.base.errors import Unreachable
from riseml.executors.docker import labels
from tests.support.waiting import DEADLINE, wait_for
from tests.unit.executors.docker.held_containers import OTHER, SERVER, HelperSite


def test_two_helpers_for_one_purpose_have_names_of_their_own_and_go_after_their_use(place: HelperSite) -> None:
    with place.helpers.lend(place.api, "disk", {}) as first, place.helpers.lend(place.api, "disk", {}) as second:
        assert {first, second} == set(place.api.rows)
        assert first.startswith(f"riseml-{SERVER[:8]}-disk-")
        assert all(labels.is_helper(row["Labels"]) for row in place.api.rows.values())
    assert place.api.rows == {}


def test_the_next_server_removes_the_helpers_of_a_killed_one_and_nothing_else(place: HelperSite) -> None:
    mine = {labels.SERVER: SERVER}
    place.api.add("left", {**mine, labels.HELPER: "disk"})
    kept = {
        "a-job": {**mine, labels.JOB: "train", labels.HELPER: ""},  # its image is a layer of code
        "a-container-of-a-user": {**mine, labels.HELPER: ""},  # of such an image, too
        "a-helper-of-another-server": {labels.SERVER: OTHER, labels.HELPER: "disk"},
    }
    for name, marks in kept.items():
        place.api.add(name, marks)
    with place.helpers.lend(place.api, "files", {}) as used:
        place.helpers.remove_forgotten(place.api)
        assert place.api.rows.keys() == {*kept, used}


def test_a_server_that_stops_removes_its_helpers_and_makes_no_new_ones(place: HelperSite) -> None:
    registry = place.helpers.registry
    place.helpers.make(place.api, "files", {})  # an idle one: no thread will give it back
    registry.end(DEADLINE)
    assert place.api.rows == {}
    with pytest.raises(Unreachable, match="the server stops"), place.helpers.lend(place.api, "disk", {}):
        pass
    assert place.api.rows == {}


def test_a_helper_that_its_engine_makes_while_the_server_stops_is_removed(place: HelperSite) -> None:
    registry, asked = place.helpers.registry, threading.Event()
    failures: list[Unreachable] = []

    def wait_for_the_end(_: str) -> None:
        asked.set()
        wait_for("the server stops", lambda: registry._is_ended, DEADLINE)

    def work() -> None:
        try:
            with place.helpers.lend(place.api, "disk", {}):
                pass
        except Unreachable as error:
            failures.append(error)

    place.api.note_create = wait_for_the_end
    worker = threading.Thread(target=work)
    worker.start()
    assert asked.wait(DEADLINE)
    registry.end(DEADLINE)
    assert (place.api.rows, registry.list_engines()) == ({}, [])
    worker.join()
    assert len(failures) == 1


def test_a_helper_that_a_busy_engine_keeps_goes_when_the_engine_answers(place: HelperSite) -> None:
    place.api.is_busy = True
    with place.helpers.lend(place.api, "disk", {}) as name:
        pass
    assert list(place.api.rows) == [name], "what it was for is done"
    assert not place.helpers.registry.is_used(name)
    place.api.is_busy = False
    wait_for("it is gone", lambda: not place.api.rows, DEADLINE)


def test_a_helper_that_an_engine_makes_without_an_answer_goes_when_it_is_there(place: HelperSite) -> None:
    asked: list[str] = []

    def break_off(name: str) -> None:
        asked.append(name)
        raise requests.exceptions.ConnectionError

    place.api.note_create = break_off
    with pytest.raises(requests.exceptions.ConnectionError):
        place.helpers.make(place.api, "disk", {})
    place.api.add(asked[0], {labels.SERVER: SERVER, labels.HELPER: "disk"})
    wait_for("it is gone", lambda: not place.api.rows, DEADLINE)
