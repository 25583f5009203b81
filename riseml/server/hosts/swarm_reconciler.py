"""Keep the right managers of the pool's swarm while hosts come, go and die. The loop calls `note` in every pass.

A look at the swarm happens in a thread of its own, and only after something changed that matters: who is a member, who
manages, who is lost. A swarm without a leader is left alone: `riseml pool recover` asks its user first.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from riseml.base.errors import RisemlError
from riseml.base.names import HostName
from riseml.base.states import Network
from riseml.control.observation import Observation
from riseml.executors.swarm_changes import Membership
from riseml.server.hosts.host_set import HostSet
from riseml.server.log_line import LogLine, write_line

_PAUSE = 10.0  # seconds between two looks
_AGAIN = 60.0  # seconds until the next look after one that failed

Facts = tuple[tuple[HostName, bool, bool, bool], ...]
"""Of each host: its name, and whether it is in a swarm, manages it, and is lost."""

_SAID = {
    Membership.JOINED: "host {} has joined the swarm of the pool again, from which it had dropped out",
    Membership.PROMOTED: "host {} manages the swarm of the pool now",
    Membership.DEMOTED: "host {} does not manage the swarm of the pool any more",
}

log = logging.getLogger(__name__)


class SwarmReconciler:
    """Arranges the managers of the swarm when an observation shows that they may be wrong.

    Args:
        hosts: the hosts of the server.
        clock: returns seconds that only grow.
    """

    def __init__(self, hosts: HostSet, clock: Callable[[], float] = time.monotonic) -> None:
        self._hosts = hosts
        self._clock = clock
        self._arranged: Facts = ()  # what the last successful look was about
        self._not_before = 0.0
        self._worker: threading.Thread | None = None

    @property
    def is_busy(self) -> bool:
        """True while a look goes on."""
        return self._worker is not None and self._worker.is_alive()

    def note(self, observation: Observation) -> None:
        """Look at the swarm when what matters has changed. Returns at once."""
        facts = find_facts(observation)
        if self.is_busy or facts == self._arranged or not may_arrange(observation) or self._clock() < self._not_before:
            return
        self._not_before = self._clock() + _PAUSE
        patient = {
            name
            for name, host in observation.hosts.items()
            if host.silent_since is not None and not observation.is_lost(host)
        }
        names = frozenset(patient | {name for name in observation.unseen if observation.is_unknown(name)})
        self._worker = threading.Thread(target=self._arrange, args=(facts, names), name="swarm", daemon=True)
        self._worker.start()

    def _arrange(self, facts: Facts, patient: frozenset[HostName]) -> None:
        try:
            changed = self._hosts.swarm.arrange(patient)
        except RisemlError as error:
            self._not_before = self._clock() + _AGAIN
            log.warning("the managers of the swarm stay as they are: %s", error.message)
            return
        self._arranged = facts
        for name, how in sorted(changed.items()):
            write_line(log, LogLine(_SAID[how].format(name), host=name))


def find_facts(observation: Observation) -> Facts:
    """Return what the choice of managers depends on."""
    return tuple(
        (name, bool(host.swarm), host.manager, observation.is_lost(host))
        for name, host in sorted(observation.hosts.items())
    )


def may_arrange(observation: Observation) -> bool:
    """Return True when the pool has a swarm of several hosts, which a host that answers manages."""
    return observation.network is Network.OVERLAY and any(
        host.manager and host.silent_since is None and not host.leaderless for host in observation.hosts.values()
    )
