"""What `decide` may know of the outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from riseml.control.actions import Action
from riseml.model import ActionFailure, HostSeen
from riseml.names import HostName
from riseml.states import Network


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything that `decide` may know of the outside.

    `busy` are the actions that were begun and have not ended, `problems` those that went wrong the last time.
    `network` is what gangs on several hosts use (BRIDGE: there are no such gangs), `shared_output` whether the hosts
    share the output.
    """

    now: datetime
    hosts: Mapping[HostName, HostSeen]
    busy: frozenset[Action] = frozenset()
    problems: Mapping[Action, ActionFailure] = field(default_factory=dict)
    lost_after: float = 300.0
    subnets: str = "10.213.0.0/16"
    network: Network = Network.BRIDGE
    shared_output: bool = True

    def is_lost(self, host: HostSeen) -> bool:
        """True when a host has been silent for so long that nobody waits for it any more."""
        return host.silent_since is not None and self.is_over(host.silent_since)

    def is_over(self, since: datetime) -> bool:
        """True when a host that has not been heard of since then is lost."""
        return (self.now - since).total_seconds() >= self.lost_after
