"""Which exits are taken from an engine's event, and which ones the engine has to be asked about."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from riseml.executors.docker.exit_events import ExitEvents
from riseml.model import ContainerSeen, JobKey
from riseml.names import JobName

AT = datetime(2026, 8, 31, 7, 23, 46, 500_000, tzinfo=UTC)
KNOWN = ContainerSeen(JobKey(4, JobName("master"), 1), "abc", started=True, started_at=AT)


def event(action: str, code: str | None = None) -> dict[str, Any]:
    attributes = {"name": "riseml-4-master"} | ({} if code is None else {"exitCode": code})
    nanoseconds = 1_788_161_026_500_000_000
    return {"Action": action, "Actor": {"ID": "abc", "Attributes": attributes}, "timeNano": nanoseconds}


def hear(*events: dict[str, Any], asked: bool = False) -> ContainerSeen | None:
    deaths = ExitEvents()
    if asked:
        deaths.ask("riseml-4-master")
    for one in events:
        deaths.note(one)
    assert deaths.take_changed() == ({"abc"} if events else set())
    assert deaths.take_changed() == set()
    return deaths.end(KNOWN)


@pytest.mark.parametrize(("code", "asked"), [("0", False), ("0", True), ("143", True), ("137", True)])
def test_an_exit_that_leaves_nothing_to_ask(code: str, asked: bool) -> None:  # noqa: FBT001
    found = hear(event("die", code), asked=asked)
    assert found is not None
    assert (found.exit_code, found.finished_at, found.running, found.oom) == (int(code), AT, False, False)


@pytest.mark.parametrize(
    "events",
    [
        [],
        [event("die", "1")],
        [event("die", "137")],
        [event("oom"), event("die", "0")],
        [event("die", "0"), event("start")],
        [event("die")],
        [event("die", "-1")],
        [event("stop")],
    ],
)
def test_the_engine_is_asked_about_all_others(events: list[dict[str, Any]]) -> None:
    assert hear(*events) is None


def test_what_was_asked_is_forgotten_with_the_container() -> None:
    assert hear(event("die", "143"), event("destroy"), event("die", "143"), asked=True) is None


@pytest.mark.parametrize("order", [("oom", "die"), ("die", "oom")])
def test_want_of_memory_is_heard_on_either_side_of_the_end(order: tuple[str, str]) -> None:
    deaths = ExitEvents()
    for action in order:
        deaths.note(event(action, "137" if action == "die" else None))
    assert deaths.starved("abc")


def test_want_of_memory_that_is_told_late_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riseml.executors.docker.exit_events._LATE", 60.0)  # however late the event is noted here
    deaths = ExitEvents()
    deaths.note(event("die", "137"))
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(deaths.starved, "abc")
        deaths.note(event("oom"))
        assert answer.result()


def test_an_end_without_want_of_memory_is_believed_in_the_end() -> None:
    deaths = ExitEvents()
    assert not deaths.starved("abc")
    deaths.note(event("die", "137"))
    assert not deaths.starved("abc")
