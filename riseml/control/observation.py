"""What `decide` may know of the outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from riseml.control.actions import Action
from riseml.model import HostSeen, Problem
from riseml.names import HostName


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything that `decide` may know of the outside.

    `busy` are the actions that were begun and have not ended, `problems` those that went wrong the last time.
    """

    now: datetime
    hosts: Mapping[HostName, HostSeen]
    busy: frozenset[Action] = frozenset()
    problems: Mapping[Action, Problem] = field(default_factory=dict)
    lost_after: float = 300.0
    subnets: str = "10.213.0.0/16"
