"""What the jobs of a gang share on its hosts, in the order in which it has to come and go.

For a gang on several hosts, one host creates the network (`Experiment.network_host`). The loop prepares the other hosts
once the network exists, and releases it last. A silent network host delays this and breaks nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from riseml.control.actions import Action, PrepareHost, ReleaseHost
from riseml.control.observation import Observation
from riseml.model import Experiment, HostSeen, Job
from riseml.names import HostName
from riseml.states import TERMINAL


def is_listed(experiment: Experiment, host: HostSeen) -> bool:
    """True when the host has what the experiment's jobs share there; what another attempt left with other addresses is
    not that.
    """
    found = host.networks.get(experiment.id)
    return found is not None and (not found or not experiment.subnet or found == experiment.subnet)


def are_ready(experiment: Experiment, jobs: Iterable[Job], seen: Observation) -> bool:
    """True when every host of these jobs is prepared, and the network_host is."""
    names = _hosts(experiment, jobs)
    return all(name in seen.hosts and is_listed(experiment, seen.hosts[name]) for name in names)


def missing(experiment: Experiment, jobs: Iterable[Job], seen: Observation) -> Iterator[Action]:
    """What prepares the hosts of these jobs: the network host, then the others."""
    names = _hosts(experiment, jobs)
    creator = experiment.network_host
    if creator is not None and not (creator in seen.hosts and is_listed(experiment, seen.hosts[creator])):
        names = [creator]
    for name in names:
        host = seen.hosts.get(name)
        if host is None or host.silent_since is not None or is_listed(experiment, host):
            continue
        if experiment.id not in host.networks:
            yield PrepareHost(name, experiment.id, experiment.subnet)
        elif not any(key.experiment == experiment.id for key in host.containers):
            yield ReleaseHost(name, experiment.id)


class OccupiedHosts:
    """Which hosts have something of which experiment, as one pass saw it. Nothing can be done about what a silent host
    has, but until the host is lost it counts.
    """

    def __init__(self, seen: Observation) -> None:
        self._networks: dict[int, list[HostName]] = {}
        self._containers: dict[int, set[HostName]] = {}
        self._silent: dict[int, set[HostName]] = {}
        self._out_of_reach: set[int] = set()
        for name, host in sorted(seen.hosts.items()):
            if host.silent_since is not None:
                if not seen.is_lost(host):
                    self._out_of_reach |= {*host.networks, *(key.experiment for key in host.containers)}
                    for key in host.containers:
                        self._silent.setdefault(key.experiment, set()).add(name)
                continue
            for owner in host.networks:
                self._networks.setdefault(owner, []).append(name)
            for key in host.containers:
                self._containers.setdefault(key.experiment, set()).add(name)

    def have(self, experiment: int) -> bool:
        """True when something of the experiment is left on any host that is not lost."""
        return any(experiment in found for found in (self._networks, self._containers, self._out_of_reach))

    def hosts_of(self, experiment: int) -> Iterator[HostName]:
        """Where containers of the experiment are, or were when a host that is silent and not lost was last seen."""
        yield from self._containers.get(experiment, ())
        yield from self._silent.get(experiment, ())

    def releases(self, experiments: dict[int, Experiment]) -> Iterator[Action]:
        """What to release: everything that nobody needs, the network host's part last."""
        for owner, names in self._networks.items():
            experiment = experiments.get(owner)
            needed = _needed(experiment)
            occupied = self._containers.get(owner, set())
            network_host = None if experiment is None else experiment.network_host
            for name in names:
                if name in needed or name in occupied:
                    continue
                if name == network_host and (len(names) > 1 or occupied):
                    continue
                yield ReleaseHost(name, owner)


def _needed(experiment: Experiment | None) -> frozenset[HostName]:
    """The hosts where a gang that has not ended needs what its jobs share."""
    if experiment is None or experiment.placed_at is None or experiment.state in TERMINAL:
        return frozenset()
    gang = experiment.gang
    if all(job.state in TERMINAL for job in gang):
        return frozenset()
    return frozenset(_hosts(experiment, gang))


def _hosts(experiment: Experiment, jobs: Iterable[Job]) -> list[HostName]:
    """The network host, then the hosts of these jobs."""
    names = sorted({job.host for job in jobs if job.host is not None})
    creator = experiment.network_host
    return names if creator is None else [creator, *(name for name in names if name != creator)]
