"""What the hosts answered, completed to the observation that `control` decides on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from riseml.control.observation import Observation
from riseml.model import HostSeen
from riseml.names import HostName
from riseml.server.pool.hosts import Hosts
from riseml.store.drained_hosts import DrainedHosts


def make_observation(
    hosts: Hosts, drained: DrainedHosts, seen: Mapping[HostName, HostSeen], moment: datetime
) -> Observation:
    """Return the observation of the hosts in `seen`: drained ones marked, with what settings and pool.yml say."""
    not_taking = drained.load_drained()
    return Observation(
        now=moment,
        hosts={name: replace(host, taking=name not in not_taking) for name, host in seen.items()},
        lost_after=hosts.settings.lost_after,
        subnets=hosts.settings.subnets,
        network=hosts.network,
        shared_output=hosts.shared_output,
    )
