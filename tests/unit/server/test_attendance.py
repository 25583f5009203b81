"""When clients last used a companion."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from riseml.server.attendance import Attendance

NOW = datetime(2026, 8, 31, 7, 23, 46, tzinfo=UTC)


class Clock:
    """Seconds that a test lets pass."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_last_use_is_now_until_the_last_client_leaves() -> None:
    clock = Clock()
    found = Attendance(clock)
    assert found.read_last_uses({1}, NOW) == {1: NOW}, "a server that has just started knows of no client"
    clock.now += 30
    assert found.read_last_uses({1}, NOW) == {1: NOW - timedelta(seconds=30)}
    with found.attend(1):
        with found.attend(1):
            clock.now += 30
        clock.now += 30
        assert found.read_last_uses({1}, NOW) == {1: NOW}
    clock.now += 5
    assert found.read_last_uses({1}, NOW) == {1: NOW - timedelta(seconds=5)}


def test_others_are_forgotten_unless_a_client_is_there() -> None:
    clock = Clock()
    found = Attendance(clock)
    found.read_last_uses({1, 2}, NOW)
    with found.attend(2):
        clock.now += 60
        assert found.read_last_uses(set(), NOW) == {}
        assert found.read_last_uses({1, 2}, NOW) == {1: NOW, 2: NOW}
