"""Networks that the engine refuses to remove, because it counts an endpoint in them.

Engine 20.10 sometimes counts an endpoint of a container that is gone: it answers `403 ... has active endpoints` for a
network without a container, until the engine restarts. The same answer comes while a container that riseml did not
make is connected. Swarm keeps the task of a connection that timed out, and then answers `... is in use by task ...` for
a network across hosts. Such a network must not keep an experiment open: after `WRITE_OFF_AFTER` it counts as foreign.
Its subnet stays taken, `riseml system clean` and `riseml pool check` name it, and riseml removes it when the engine is
back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from docker.errors import APIError

from riseml.base.errors import EngineError

WRITE_OFF_AFTER = 60.0  # seconds after the first refusal
_FORBIDDEN = 403
_ENDPOINT_WORDS = "active endpoints"
_TASK_WORDS = "is in use by task"  # Swarm's; engines differ in the status that they give to it


class StuckNetworks:
    """The networks of one engine that it refused to remove, by their ids, with the time of the first refusal.

    Args:
        clock: returns seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._refused: dict[str, float] = {}  # network id -> time of the first refusal

    def note_refusal(self, identity: str) -> None:
        """Remember when the engine refused first."""
        self._refused.setdefault(identity, self._clock())

    def note_removal(self, identity: str) -> None:
        """Forget a network that is gone."""
        self._refused.pop(identity, None)

    def written_off(self) -> frozenset[str]:
        """Return the ids of the networks that no experiment waits for any more."""
        refused = list(self._refused.items())
        return frozenset(identity for identity, since in refused if self._clock() - since >= WRITE_OFF_AFTER)


def is_stuck(error: APIError) -> bool:
    """Return True when the engine refused to remove a network because it counts an endpoint or a task in it."""
    words = str(error.explanation)
    return _TASK_WORDS in words or (error.status_code == _FORBIDDEN and _ENDPOINT_WORDS in words)


def explain_stuck(name: str, containers: Collection[str]) -> EngineError:
    """Return the error that says why a network cannot be removed and what clears it.

    Args:
        name: the name of the network.
        containers: names of the containers that are connected to it.
    """
    if containers:
        names = ", ".join(sorted(containers))
        return EngineError(
            f"the network {name} is in use by {names}: `docker network disconnect` clears it", permanent=False
        )
    return EngineError(
        f"the engine counts an endpoint of a container that is gone in the network {name}: a restart of the engine"
        " clears it",
        permanent=False,
    )
