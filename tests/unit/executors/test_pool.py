"""The looks of a pool: what is wrong with one host is its own trouble, and silence is measured by a true clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from riseml.errors import RisemlError
from riseml.executors.memory import MemoryExecutor
from riseml.executors.pool import HostPool
from riseml.model import Capacity, HostSeen
from riseml.names import HostName
from tests.support.waiting import wait_for

NOW = datetime(2026, 8, 31, 7, 23, 40, tzinfo=UTC)
PATIENCE = 60.0  # seconds
H1, H2 = HostName("h1"), HostName("h2")


class Odd(MemoryExecutor):
    """A host whose answer may be anything."""

    trouble: Exception | None = None

    def observe(self, references: frozenset[str]) -> HostSeen:
        if self.trouble is not None:
            raise self.trouble
        return super().observe(references)


class Scene:
    """Two hosts, one of them odd, and a clock that the test turns."""

    def __init__(self) -> None:
        self.odd = Odd(H1, Capacity(1.0, 1024))
        self.told: list[RisemlError] = []
        self.seconds = 0.0
        hosts = (self.odd, MemoryExecutor(H2, Capacity(1.0, 1024)))
        self.pool = HostPool(hosts, PATIENCE, lambda _, error: self.told.append(error), lambda: self.seconds)

    def look(self, second: float) -> dict[HostName, HostSeen]:
        return self.pool.observe(frozenset(), NOW + timedelta(seconds=second))

    def silence(self, second: float) -> datetime | None:
        """Since when the odd host is silent, once it was asked again."""
        self.look(second)
        return self.look(second)[H1].silent_since


def test_an_answer_that_cannot_be_read_is_the_trouble_of_its_host() -> None:
    scene = Scene()
    scene.look(0)
    scene.odd.trouble = KeyError("io.riseml.experiment")
    seen = scene.look(1)
    assert seen[H1].silent_since == NOW + timedelta(seconds=1)
    assert seen[H2].silent_since is None
    assert [error.message for error in scene.told] == [
        "what it answered cannot be read: KeyError('io.riseml.experiment')"
    ]
    scene.odd.trouble = None
    wait_for("it is heard again", lambda: scene.look(2)[H1].silent_since is None, PATIENCE)
    assert scene.pool.troubles() == {}


def test_a_host_that_is_silent_since_some_time_keeps_its_moment() -> None:
    scene = Scene()
    scene.look(0)
    scene.odd.trouble = OSError("no answer")
    first = scene.silence(0)
    scene.seconds = 10.0
    assert scene.silence(10.4) == first == NOW


def test_the_time_that_this_machine_slept_does_not_count() -> None:
    scene = Scene()
    scene.look(0)
    scene.odd.trouble = OSError("no answer")
    scene.look(0)
    scene.seconds = 5.0
    assert scene.silence(3600) == NOW + timedelta(seconds=3595)


def test_a_clock_that_was_set_back_makes_no_silence_of_the_future() -> None:
    scene = Scene()
    scene.look(0)
    scene.odd.trouble = OSError("no answer")
    scene.look(0)
    scene.seconds = 5.0
    assert scene.silence(-3600) == NOW - timedelta(seconds=3605)
