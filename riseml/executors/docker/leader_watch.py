"""Whether the swarm of an engine has a leader, asked without waiting for one.

A manager whose leader has just died answers everything that needs the swarm only after 20 s: `GET /swarm`, `GET
/nodes`, and also `GET /info` and `GET /networks` (seen with Engine 20.10). Its containers go on, and it answers for
them at once. So a manager is asked for its swarm first, for a second at most. While it does not answer that, the
server keeps what it knew of networks and facts, and the host is not silent.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum

from riseml.base.errors import EngineError, Unreachable
from riseml.executors.transports.engine_client import Engine

_ASK_AGAIN = 4.0  # seconds after a question without an answer
_PROMPT = 0.5  # seconds within which an engine answers that is not busy

NOT_A_MANAGER = "not a swarm manager"


class LeaderAnswer(Enum):
    """What a manager said about its swarm."""

    LEADER = "leader"  # it has one
    NO_LEADER = "no leader"
    LATE = "late"  # it did not answer in time, while the engine itself does
    NO_MANAGER = "no manager"  # it does not manage a swarm any more


class LeaderWatch:
    """Asks one engine whether the swarm that it manages has a leader.

    Args:
        engine: the engine.
        clock: returns seconds that only grow.
    """

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.monotonic) -> None:
        self.leaderless = False  # as of the last answer
        self._engine = engine
        self._clock = clock
        self._not_before = 0.0

    def ask(self) -> LeaderAnswer:
        """Return what the manager says.

        Raises:
            Unreachable: the engine itself does not answer.
        """
        if self._clock() < self._not_before:
            return LeaderAnswer.LATE
        try:
            with self._engine.api(brief=True) as api:
                api.inspect_swarm()
        except EngineError as error:
            answer = LeaderAnswer.NO_MANAGER if NOT_A_MANAGER in error.message else LeaderAnswer.NO_LEADER
        except Unreachable:
            answer = LeaderAnswer.LATE
            began = self._clock()
            with self._engine.api() as api:
                api.ping()
            if self._clock() - began > _PROMPT:  # everything takes long there, which says nothing about the swarm
                return answer
            self._not_before = self._clock() + _ASK_AGAIN
        else:
            answer = LeaderAnswer.LEADER
        self.leaderless = answer in (LeaderAnswer.NO_LEADER, LeaderAnswer.LATE)
        return answer
