"""Inspect containers without waiting for one that its engine works on.

An engine answers for a container only after it has connected it to its network, or taken it out of one. On a network
across hosts that takes 20 s when the swarm has just lost a manager (seen with Engine 20.10). The list of containers
comes at once meanwhile, so the host is not silent: the container stays as it was known.

A question that is late stays open in a thread of its own, and a later observation takes its answer. So an engine that
needs a second for each answer gets each question once, and its answer counts as soon as it is there.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from riseml.base.errors import RisemlError, Unreachable
from riseml.executors.transports.engine_client import Engine

_PATIENCE_WHEN_LATE = 0.05  # seconds for an answer when the engine was late for another container
_GIVE_UP_AFTER = 30.0  # seconds after which an engine that has not answered for a container is silent


class ContainerInspections:
    """Inspects the containers of one engine.

    Args:
        engine: the engine.
        clock: returns seconds that only grow.
    """

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._clock = clock
        self._open: dict[str, _OpenQuestion] = {}  # by id of the container
        self._is_late = False  # the engine was late in this observation

    def inspect(self, identity: str) -> dict[str, Any] | None:
        """Return the answer of `GET /containers/{id}/json`; None: the engine works on the container.

        Raises:
            EngineError: there is no such container.
            Unreachable: the engine does not answer, also after some time.
        """
        question = self._open.get(identity)
        if question is None and not self._is_late:
            try:
                with self._engine.api(brief=True) as api:
                    return dict(api.inspect_container(identity))
            except Unreachable:
                self._is_late = True
        if question is None:
            question = self._open[identity] = _OpenQuestion(self._engine, identity, self._clock())
            question.start()
            question.answered.wait(_PATIENCE_WHEN_LATE)
        if question.answered.is_set():
            self._open.pop(identity, None)
            return question.take_answer()
        if self._clock() - question.since > _GIVE_UP_AFTER:
            raise Unreachable(f"the Docker Engine at {self._engine.url} does not answer for container {identity[:12]}")
        return None

    def begin_observation(self, identities: frozenset[str]) -> None:
        """Forget the open questions about containers that are gone."""
        self._is_late = False
        for identity in self._open.keys() - identities:
            self._open.pop(identity, None)


class _OpenQuestion(threading.Thread):
    """Waits for one inspection as long as the engine may take."""

    def __init__(self, engine: Engine, identity: str, since: float) -> None:
        super().__init__(name=f"inspect-{identity[:12]}", daemon=True)
        self.since = since
        self.answered = threading.Event()
        self._engine = engine
        self._identity = identity
        self._answer: dict[str, Any] | RisemlError = {}

    def run(self) -> None:
        try:
            with self._engine.api(patient=True) as api:
                self._answer = dict(api.inspect_container(self._identity))
        except RisemlError as error:
            self._answer = error
        finally:
            self.answered.set()

    def take_answer(self) -> dict[str, Any]:
        """Return the answer, which has come.

        Raises:
            RisemlError: the engine refused, or did not answer.
        """
        if isinstance(self._answer, RisemlError):
            raise self._answer
        return self._answer
