"""A pool of hosts: a problem or a slow answer of one host concerns no other; silence is measured by a steady clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from riseml.base.errors import RisemlError
from riseml.base.names import HostName
from riseml.executors.pool import HostPool
from riseml.model import Capacity, HostObservation
from tests.support.memory_executor import MemoryExecutor, SlowExecutor
from tests.support.waiting import wait_for

NOW = datetime(2026, 8, 31, 7, 23, 40, tzinfo=UTC)
PATIENCE = 60.0  # seconds
H1, H2 = HostName("h1"), HostName("h2")


class Odd(MemoryExecutor):
    """A host that raises an exception when the test says so."""

    error: Exception | None = None

    def observe(self, references: frozenset[str]) -> HostObservation:
        if self.error is not None:
            raise self.error
        return super().observe(references)


class Scene:
    """Two hosts, one of them odd, and a clock that the test sets."""

    def __init__(self) -> None:
        self.odd = Odd(H1, Capacity(1.0, 1024))
        self.reported: list[RisemlError] = []
        self.seconds = 0.0
        hosts = (self.odd, MemoryExecutor(H2, Capacity(1.0, 1024)))
        self.pool = HostPool(hosts, PATIENCE, lambda _, error: self.reported.append(error), lambda: self.seconds)

    def observe(self, second: float) -> dict[HostName, HostObservation]:
        return self.pool.observe_hosts(frozenset(), NOW + timedelta(seconds=second))

    def silence(self, second: float) -> datetime | None:
        """Return since when the odd host is silent, after another observation."""
        self.observe(second)
        return self.observe(second)[H1].silent_since


def test_an_answer_that_cannot_be_read_is_a_problem_of_its_host_alone() -> None:
    scene = Scene()
    scene.observe(0)
    scene.odd.error = KeyError("io.riseml.experiment")
    seen = scene.observe(1)
    assert seen[H1].silent_since == NOW + timedelta(seconds=1)
    assert seen[H2].silent_since is None
    assert [error.message for error in scene.reported] == [
        "its answer cannot be read: KeyError('io.riseml.experiment')"
    ]
    scene.odd.error = None
    wait_for("it answers again", lambda: scene.observe(2)[H1].silent_since is None, PATIENCE)
    assert scene.pool.list_problems() == {}


def test_a_silent_host_keeps_the_moment_at_which_it_fell_silent() -> None:
    scene = Scene()
    scene.observe(0)
    scene.odd.error = OSError("no answer")
    first = scene.silence(0)
    scene.seconds = 10.0
    assert scene.silence(10.4) == first == NOW


def test_time_in_which_this_machine_sleeps_does_not_count_as_silence() -> None:
    scene = Scene()
    scene.observe(0)
    scene.odd.error = OSError("no answer")
    scene.observe(0)
    scene.seconds = 5.0
    assert scene.silence(3600) == NOW + timedelta(seconds=3595)


def test_a_clock_that_is_set_back_gives_no_silence_in_the_future() -> None:
    scene = Scene()
    scene.observe(0)
    scene.odd.error = OSError("no answer")
    scene.observe(0)
    scene.seconds = 5.0
    assert scene.silence(-3600) == NOW - timedelta(seconds=3605)


def test_a_host_that_has_never_answered_is_unseen_since_the_first_pass() -> None:
    scene = Scene()
    scene.odd.error = OSError("no answer")
    assert scene.pool.list_unseen() == {}, "nothing was asked"
    assert set(scene.observe(0)) == {H2}
    scene.seconds = 5.0
    scene.observe(5)
    assert scene.pool.list_unseen() == {H1: NOW}
    scene.odd.error = None
    wait_for("it answers", lambda: H1 in scene.observe(5), PATIENCE)
    assert scene.pool.list_unseen() == {}


NOTHING: frozenset[str] = frozenset()


def list_answering(pool: HostPool) -> list[HostName]:
    return [name for name, host in pool.list_last_seen().items() if host.silent_since is None]


def test_a_host_that_is_only_slow_still_takes_experiments() -> None:
    host = SlowExecutor(HostName("h1"), Capacity(4, 8192))
    pool = HostPool((host,), 0.05, lambda *_: None)
    pool.observe_hosts(NOTHING, NOW)
    assert not pool.has_usable_host(), "it has never answered"
    host.may.set()
    while not list_answering(pool):
        pool.observe_hosts(NOTHING, NOW)
    host.may.clear()
    pool.observe_hosts(NOTHING, NOW)
    assert list_answering(pool) == []
    assert pool.has_usable_host()
    host.faults.silent = True
    host.may.set()
    while not pool.list_problems():
        pool.observe_hosts(NOTHING, NOW)
    assert not pool.has_usable_host(), "it is known that it does not"


def test_a_host_that_answers_an_earlier_pass_is_late_until_it_is_asked_again() -> None:
    host = SlowExecutor(HostName("h1"), Capacity(4, 8192))
    pool = HostPool((host,), 0.05, lambda *_: None)
    assert pool.list_late() == frozenset()
    pool.observe_hosts(NOTHING, NOW)
    assert pool.list_late() == {host.name}
    host.may.set()
    while not list_answering(pool):
        assert pool.list_late() == {host.name}
        pool.observe_hosts(NOTHING, NOW)
    assert pool.list_late() == frozenset()
