"""A container that its engine works on keeps no observation waiting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import docker
import pytest

from riseml.errors import Unreachable
from riseml.executors.docker.container_inspections import ContainerInspections
from riseml.executors.transports.engine_client import Engine

LATE = Unreachable("the Docker Engine does not answer: timed out")


@dataclass
class ContainerApi(docker.APIClient):
    """Answers for containers, and for some of them not in time."""

    late: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)

    def inspect_container(self, *names: Any, **_: Any) -> dict[str, Any]:
        (container,) = names
        self.asked.append(container)
        if container in self.late:
            raise LATE
        return {"Id": container}


class InspectedEngine(Engine):
    def __init__(self, api: ContainerApi) -> None:
        super().__init__("unix:///none")
        self.own = api

    @contextmanager
    def api(self, *, patient: bool = False, brief: bool = False) -> Iterator[docker.APIClient]:
        yield self.own


def test_late_containers_cost_an_observation_one_question() -> None:
    api, now = ContainerApi({"a", "b"}), 0.0
    inspections = ContainerInspections(InspectedEngine(api), lambda: now)
    for _ in range(2):  # the first time each is asked for, and then one of them
        inspections.begin_observation(frozenset("abc"))
        assert [inspections.inspect(one) for one in "abc"] == [None, None, {"Id": "c"}]
    assert api.asked == ["a", "b", "c", "a", "c"]
    api.late.clear()
    inspections.begin_observation(frozenset("abc"))
    assert [inspections.inspect(one) for one in "abc"] == [{"Id": one} for one in "abc"]


def test_an_engine_that_is_late_for_long_is_silent() -> None:
    now = 0.0
    inspections = ContainerInspections(InspectedEngine(ContainerApi({"a"})), lambda: now)
    inspections.begin_observation(frozenset("a"))
    assert inspections.inspect("a") is None
    now = 31.0
    inspections.begin_observation(frozenset("a"))
    with pytest.raises(Unreachable):
        inspections.inspect("a")
