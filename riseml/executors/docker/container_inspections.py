"""Inspect containers without waiting for one that its engine works on.

An engine answers for a container only after it has connected it to its network, or taken it out of one. On a network
across hosts that takes 20 s when the swarm has just lost a manager (seen with Engine 20.10). The list of containers
comes at once meanwhile, so the host is not silent: the container stays as it was known.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from riseml.errors import EngineError, Unreachable
from riseml.executors.transports.engine_client import Engine

_GIVE_UP_AFTER = 30.0  # seconds after which the engine is waited for, as for any other answer


class ContainerInspections:
    """Inspects the containers of one engine.

    Args:
        engine: the engine.
        clock: returns seconds that only grow.
    """

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._clock = clock
        self._late: dict[str, float] = {}  # by id of the container: when it was late first
        self._is_late = False  # a container was late in this observation

    def inspect(self, identity: str) -> dict[str, Any] | None:
        """Return the answer of `GET /containers/{id}/json`; None: the engine works on the container.

        Raises:
            EngineError: there is no such container.
            Unreachable: the engine does not answer, also after some time.
        """
        since, now = self._late.get(identity), self._clock()
        if since is not None and now - since > _GIVE_UP_AFTER:
            del self._late[identity]
            with self._engine.api() as api:
                return dict(api.inspect_container(identity))
        if self._is_late and since is not None:  # one late answer is enough for one observation
            self._late.setdefault(identity, now)
            return None
        try:
            with self._engine.api(brief=True) as api:
                found = dict(api.inspect_container(identity))
        except EngineError:
            self._late.pop(identity, None)
            raise
        except Unreachable:
            self._late.setdefault(identity, now)
            self._is_late = True
            return None
        self._late.pop(identity, None)
        return found

    def begin_observation(self, identities: frozenset[str]) -> None:
        """Ask for late containers again, and forget those that are gone."""
        self._is_late = False
        self._late = {identity: since for identity, since in self._late.items() if identity in identities}
