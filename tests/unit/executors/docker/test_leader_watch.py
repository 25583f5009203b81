"""A manager that loses its leader is neither asked for long nor silent. Real ones: tests/real/pool/test_swarm.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import docker
import pytest

from riseml.base.errors import EngineError, Unreachable
from riseml.executors.docker.leader_watch import LeaderAnswer, LeaderWatch
from riseml.executors.transports.engine_client import Engine

GONE = EngineError("The swarm does not have a leader. It's possible that too few managers are online.")
WORKER = EngineError("This node is not a swarm manager. Worker nodes can't be used to view or modify cluster state.")
LATE = Unreachable("the Docker Engine does not answer: timed out")


@dataclass
class SwarmApi(docker.APIClient):
    """Answers for its swarm with an error, or not at all."""

    trouble: Exception | None = None
    dead: bool = False
    asked: int = 0

    def inspect_swarm(self) -> dict[str, str]:
        self.asked += 1
        if self.trouble is not None:
            raise self.trouble
        return {"ID": "s1"}

    def ping(self) -> bool:
        if self.dead:
            raise LATE
        return True


class AskedEngine(Engine):
    def __init__(self, api: SwarmApi) -> None:
        super().__init__("unix:///none")
        self.own = api
        self.briefly: list[bool] = []

    @contextmanager
    def api(self, *, patient: bool = False, brief: bool = False) -> Iterator[docker.APIClient]:
        self.briefly.append(brief)
        yield self.own


@pytest.mark.parametrize(
    ("trouble", "answer", "leaderless"),
    [
        (None, LeaderAnswer.LEADER, False),
        (GONE, LeaderAnswer.NO_LEADER, True),
        (WORKER, LeaderAnswer.NO_MANAGER, False),
        (LATE, LeaderAnswer.LATE, True),
    ],
    ids=["leader", "no leader", "a worker", "late"],
)
def test_what_a_manager_says_of_its_swarm(trouble: Exception | None, answer: LeaderAnswer, *, leaderless: bool) -> None:
    engine = AskedEngine(SwarmApi(trouble))
    watch = LeaderWatch(engine)
    assert (watch.ask(), watch.leaderless) == (answer, leaderless)
    assert engine.briefly[0], "nothing waits for it"


def test_an_engine_that_is_late_for_its_swarm_is_asked_again_after_some_seconds() -> None:
    api, now = SwarmApi(LATE), 0.0
    watch = LeaderWatch(AskedEngine(api), lambda: now)
    for seconds, times in ((0.0, 1), (1.0, 1), (3.0, 1), (5.0, 2)):
        now = seconds
        assert watch.ask() is LeaderAnswer.LATE
        assert api.asked == times, "each question keeps the engine busy for 20 s"
    api.trouble, now = None, 20.0
    assert (watch.ask(), watch.leaderless) == (LeaderAnswer.LEADER, False)


def test_a_busy_engine_says_nothing_about_its_leader() -> None:
    times = iter([0.0, 0.0, 3.0, 4.0, 4.0])  # three seconds pass while it answers to a ping
    watch = LeaderWatch(AskedEngine(SwarmApi(LATE)), lambda: next(times))
    assert (watch.ask(), watch.leaderless) == (LeaderAnswer.LATE, False)


def test_an_engine_that_answers_nothing_is_silent() -> None:
    watch = LeaderWatch(AskedEngine(SwarmApi(LATE, dead=True)))
    with pytest.raises(Unreachable):
        watch.ask()
