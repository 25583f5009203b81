"""Complete the answers of the hosts to the observation on which `control` decides."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from riseml.base.errors import RisemlError
from riseml.base.names import HostName
from riseml.control.observation import Observation
from riseml.model import HostObservation
from riseml.server.hosts.host_set import HostSet
from riseml.server.hosts.swarm_ids import find_swarms
from riseml.store.marks import DrainedHosts

log = logging.getLogger(__name__)


def make_observation(
    hosts: HostSet, drained: DrainedHosts, answers: Mapping[HostName, HostObservation], moment: datetime
) -> Observation:
    """Return the observation of the hosts in `answers`: with drained hosts marked, and the values of settings and
    pool.yml."""
    not_taking = drained.load_drained()
    swarms = find_swarms({name: host.swarm_managers for name, host in answers.items()})
    return Observation(
        now=moment,
        hosts={
            name: replace(host, taking=name not in not_taking, swarm=swarms[name] or host.swarm)
            for name, host in answers.items()
        },
        unseen=hosts.pool.list_unseen(),
        lost_after=hosts.settings.lost_after,
        subnets=hosts.settings.subnets,
        network=hosts.network,
        shared_output=hosts.shared_output,
    )


def observe_environment(hosts: HostSet, references: frozenset[str]) -> dict[HostName, HostObservation]:
    """Return every host that answers, and whether it has these images. Do not ask hosts that are known to be silent."""
    last = hosts.last_seen()
    answers: dict[HostName, HostObservation] = {}
    for name, executor in hosts.pool.executors.items():
        if name in last and last[name].silent_since is not None:
            continue
        try:
            answers[name] = executor.observe(references)
        except RisemlError as error:
            log.debug("host %s did not say whether it has %s: %s", name, ", ".join(references), error.message)
    return answers
