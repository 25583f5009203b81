"""What the engine's events tell of a container, in whatever order they arrive."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from riseml.executors.docker.exit_events import ContainerEvents, ExitEvents

AT = datetime(2026, 8, 31, 7, 23, 46, 500_000, tzinfo=UTC)
NAME = "riseml-4-master"


def event(action: str, code: str | None = None) -> dict[str, Any]:
    attributes = {"name": NAME} | ({} if code is None else {"exitCode": code})
    nanoseconds = 1_788_161_026_500_000_000
    return {"Action": action, "Actor": {"ID": "abc", "Attributes": attributes}, "timeNano": nanoseconds}


class Scene:
    """Events of one container, and a clock that the test sets."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.events = ExitEvents(lambda: self.seconds)

    def note(self, *events: dict[str, Any]) -> ContainerEvents:
        for one in events:
            self.events.note_event(one)
        return self.find()

    def find(self) -> ContainerEvents:
        return self.events.find_events("abc", changed=True)


@pytest.mark.parametrize(("code", "signalled"), [("0", False), ("0", True), ("143", True), ("137", True)])
def test_an_exit_that_needs_no_explanation_needs_no_inspection(code: str, *, signalled: bool) -> None:
    scene = Scene()
    if signalled:
        scene.events.note_signal(NAME)
    found = scene.note(event("die", code))
    assert (found.exit_code, found.finished_at, found.signalled) == (int(code), AT, signalled)
    assert found.tells_everything


@pytest.mark.parametrize(
    "events",
    [
        [],
        [event("die", "1")],
        [event("die", "137")],
        [event("oom"), event("die", "0")],
        [event("die", "0"), event("oom")],
        [event("die", "0"), event("start")],
        [event("die")],
        [event("die", "-1")],
        [event("stop")],
    ],
)
def test_every_other_exit_needs_an_inspection(events: list[dict[str, Any]]) -> None:
    assert not Scene().note(*events).tells_everything


def test_each_changed_container_is_named_once() -> None:
    scene = Scene()
    scene.note(event("die", "1"), event("destroy"))
    assert scene.events.take_changed() == {"abc"}
    assert scene.events.take_changed() == set()


def test_a_signal_is_forgotten_with_its_container() -> None:
    scene = Scene()
    scene.events.note_signal(NAME)
    assert not scene.note(event("die", "143"), event("destroy"), event("die", "143")).tells_everything


@pytest.mark.parametrize("order", [("oom", "die"), ("die", "oom")])
def test_the_out_of_memory_event_counts_on_either_side_of_the_exit(order: tuple[str, str]) -> None:
    found = Scene().note(*(event(action, "137" if action == "die" else None) for action in order))
    assert found.out_of_memory


def test_an_exit_settles_half_a_second_after_its_event() -> None:
    scene = Scene()
    assert scene.find().settles_in == 0
    assert scene.note(event("die", "137")).settles_in == 0.5
    scene.seconds = 0.4
    assert scene.find().settles_in == pytest.approx(0.1)
    scene.seconds = 0.6
    assert scene.find().settles_in == 0
