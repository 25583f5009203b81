"""A container that its engine works on keeps no observation waiting, and its answer counts when it comes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import docker
import pytest

from riseml.base.errors import Unreachable
from riseml.executors.base import NotThere
from riseml.executors.docker.container_inspections import ContainerInspections
from riseml.executors.transports.engine_client import Engine
from tests.support.waiting import DEADLINE, wait_for

LATE = Unreachable("the Docker Engine does not answer: timed out")


@dataclass
class ContainerApi(docker.APIClient):
    """Answers for containers, and for some of them not in time."""

    late: dict[str, threading.Event] = field(default_factory=dict)  # set: the engine answers now
    gone: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    patient: bool = False

    def inspect_container(self, *names: Any, **_: Any) -> dict[str, Any]:
        (container,) = names
        self.asked.append(container)
        if container in self.late and not self.late[container].wait(60.0 if self.patient else 0.0):
            raise LATE
        if container in self.gone:
            raise NotThere("No such container")
        return {"Id": container}


class InspectedEngine(Engine):
    def __init__(self, **late: threading.Event) -> None:
        super().__init__("unix:///none")
        self.own = ContainerApi(late)
        self.beside = ContainerApi(late, self.own.gone, patient=True)

    @contextmanager
    def api(self, *, patient: bool = False, brief: bool = False) -> Iterator[docker.APIClient]:
        yield self.beside if patient else self.own


@pytest.fixture
def engine() -> Iterator[InspectedEngine]:
    late = {name: threading.Event() for name in "ab"}
    yield InspectedEngine(**late)
    for event in late.values():
        event.set()


def test_late_containers_are_asked_about_once_and_hold_no_observation_up(engine: InspectedEngine) -> None:
    inspections = ContainerInspections(engine)
    for _ in range(3):
        inspections.begin_observation(frozenset("abc"))
        assert [inspections.inspect(one) for one in "cab"] == [{"Id": "c"}, None, None]
    assert engine.own.asked == ["c", "a", "c", "c"], "b gets no time of this observation, as a was late"
    assert sorted(engine.beside.asked) == ["a", "b"]


def test_other_containers_are_known_while_one_is_late(engine: InspectedEngine) -> None:
    inspections = ContainerInspections(engine)
    inspections.begin_observation(frozenset("ac"))
    assert inspections.inspect("a") is None
    wait_for("c is known", lambda: inspections.inspect("c"), DEADLINE)


def test_a_late_answer_counts_when_it_comes(engine: InspectedEngine) -> None:
    inspections = ContainerInspections(engine)
    assert inspections.inspect("a") is None
    engine.own.gone.add("b")
    assert inspections.inspect("b") is None
    for event in engine.own.late.values():
        event.set()
    assert wait_for("the answer", lambda: inspections.inspect("a"), DEADLINE) == {"Id": "a"}
    with pytest.raises(NotThere):
        wait_for("the refusal", lambda: inspections.inspect("b"), DEADLINE)


def test_an_engine_that_is_late_for_long_is_silent(engine: InspectedEngine) -> None:
    now = 0.0
    inspections = ContainerInspections(engine, lambda: now)
    assert inspections.inspect("a") is None
    now = 31.0
    inspections.begin_observation(frozenset("a"))
    with pytest.raises(Unreachable):
        inspections.inspect("a")
    inspections.begin_observation(frozenset("b"))
    inspections.begin_observation(frozenset("a"))
    assert inspections.inspect("a") is None, "a container that was gone meanwhile is asked about again"
