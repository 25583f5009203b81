"""When to create and when to remove what the jobs of a gang share on its hosts.

For a gang on several hosts, one host creates the network (`Experiment.network_host`). The loop prepares the other hosts
once the network exists, and releases the network host last. A silent network host delays this and breaks nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from riseml.base.names import HostName
from riseml.base.states import TERMINAL
from riseml.control.actions import Action, PrepareHost, ReleaseHost
from riseml.control.observation import Observation
from riseml.model import Experiment, HostObservation, Job


def is_prepared(experiment: Experiment, host: HostObservation) -> bool:
    """Return True when the host has what the experiment's jobs share; a network with another subnet, which an earlier
    attempt has left behind, does not count.
    """
    subnet = host.networks.get(experiment.id)
    return subnet is not None and (not subnet or not experiment.subnet or subnet == experiment.subnet)


def hosts_are_prepared(experiment: Experiment, jobs: Iterable[Job], observation: Observation) -> bool:
    """Return True when every host of these jobs and the network host are prepared."""
    names = _hosts_of(experiment, jobs)
    return all(name in observation.hosts and is_prepared(experiment, observation.hosts[name]) for name in names)


def find_preparations(experiment: Experiment, jobs: Iterable[Job], observation: Observation) -> Iterator[Action]:
    """Yield the actions that prepare the hosts of these jobs: first the network host, then the others."""
    names = _hosts_of(experiment, jobs)
    creator = experiment.network_host
    if creator is not None and not (
        creator in observation.hosts and is_prepared(experiment, observation.hosts[creator])
    ):
        names = [creator]
    for name in names:
        host = observation.hosts.get(name)
        if host is None or host.silent_since is not None or is_prepared(experiment, host):
            continue
        if name == creator and host.leaderless:
            continue
        if experiment.id not in host.networks:
            yield PrepareHost(name, experiment.id, experiment.subnet)
        elif not any(key.experiment == experiment.id for key in host.containers):
            yield ReleaseHost(name, experiment.id)


class OccupiedHosts:
    """Which hosts have containers or networks of which experiment, as one pass saw it.

    What a silent host has counts until the host is lost, although no action can remove it.
    """

    def __init__(self, observation: Observation) -> None:
        self._observation = observation
        self._networks: dict[int, list[HostName]] = {}
        self._containers: dict[int, set[HostName]] = {}
        self._silent_hosts: dict[int, set[HostName]] = {}
        self._on_silent_hosts: set[int] = set()
        for name, host in sorted(observation.hosts.items()):
            if host.silent_since is not None:
                if not observation.is_lost(host):
                    self._on_silent_hosts |= {*host.networks, *(key.experiment for key in host.containers)}
                    for key in host.containers:
                        self._silent_hosts.setdefault(key.experiment, set()).add(name)
                continue
            for owner in host.networks:
                self._networks.setdefault(owner, []).append(name)
            for key in host.containers:
                self._containers.setdefault(key.experiment, set()).add(name)

    def include(self, experiment: Experiment) -> bool:
        """Return True when a host that is not lost has a container or a network of the experiment, or may have one: the
        server has just started, and the host has not answered yet.
        """
        if any(experiment.id in holders for holders in (self._networks, self._containers, self._on_silent_hosts)):
            return True
        return any(self._observation.is_unknown(host) for host in _hosts_of(experiment, experiment.jobs))

    def hosts_of(self, experiment: int) -> Iterator[HostName]:
        """Yield the hosts with containers of the experiment; until it is lost, a silent host counts as last seen."""
        yield from self._containers.get(experiment, ())
        yield from self._silent_hosts.get(experiment, ())

    def find_releases(self, experiments: dict[int, Experiment]) -> Iterator[Action]:
        """Yield the actions that release the hosts that no job needs any more, the network host last."""
        for owner, names in self._networks.items():
            experiment = experiments.get(owner)
            in_use = _hosts_in_use(experiment)
            occupied = self._containers.get(owner, set())
            network_host = None if experiment is None else experiment.network_host
            for name in names:
                if name in in_use or name in occupied:
                    continue
                if name == network_host and (len(names) > 1 or occupied):
                    continue
                yield ReleaseHost(name, owner)


def _hosts_in_use(experiment: Experiment | None) -> frozenset[HostName]:
    """Return the hosts on which the jobs of an experiment still need what they share."""
    if experiment is None or experiment.placed_at is None or experiment.state in TERMINAL:
        return frozenset()
    gang = experiment.gang
    if all(job.state in TERMINAL for job in gang):
        return frozenset()
    return frozenset(_hosts_of(experiment, gang))


def _hosts_of(experiment: Experiment, jobs: Iterable[Job]) -> list[HostName]:
    """Return the network host, then the hosts of these jobs."""
    names = sorted({job.host for job in jobs if job.host is not None})
    creator = experiment.network_host
    return names if creator is None else [creator, *(name for name in names if name != creator)]
