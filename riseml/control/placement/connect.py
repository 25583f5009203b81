"""How the jobs of a gang reach each other: network, addresses, ports, and the host that creates the network."""

from __future__ import annotations

from dataclasses import replace

from riseml.base.names import HostName
from riseml.base.records import dataclass
from riseml.base.states import PLACED, Network, State
from riseml.control.actions import PrepareHost
from riseml.control.observation import Observation
from riseml.control.placement.addresses import (
    PortAllocator,
    SubnetAllocator,
    choose_addresses,
    count_addresses,
    find_free_subnets,
)
from riseml.model import Experiment, World

_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class GangConnection:
    """How the jobs of one gang reach each other."""

    network: Network
    addresses: tuple[str, ...]  # in the order of the gang
    ports: tuple[int | None, ...]  # in the order of the gang; None: the job has its own address
    subnet: str | None = None  # CIDR; None: the gang has no private network
    network_host: HostName | None = None  # the host that creates a network across hosts


class FreeAddresses:
    """The subnets and ports that the gangs of one pass may get. `connect` takes what it returns.

    Example:
        addresses = FreeAddresses(world.experiments, observation)
        addresses.keep_subnet_for(3)                        # for the head of the queue, whenever it starts
        addresses.connect(experiment, ("gpu1", "gpu2"))     # None when the addresses or ports do not suffice
    """

    def __init__(self, experiments: tuple[Experiment, ...], observation: Observation) -> None:
        self._experiments = experiments
        self._observation = observation
        self._subnets: SubnetAllocator | None = None  # computed when the first gang needs one, because it takes long
        self._ports: PortAllocator | None = None
        # jobs of the head whose subnet must still be reserved; None: nothing to reserve
        self._head_jobs: int | None = None

    def keep_subnet_for(self, jobs: int) -> None:
        """Put a subnet aside for the head of the queue, a gang with this many jobs."""
        self._head_jobs = jobs

    def connect(self, waiting: Experiment, hosts: tuple[HostName, ...]) -> GangConnection | None:
        """Return how the gang of `waiting` is connected on these hosts; None when no subnet or too few ports are free.

        The hosts are in the order of the jobs.
        """
        observation = self._observation
        several = len(set(hosts)) > 1
        if needs_ports(observation, hosts):
            ports = self._take_ports(hosts)
            if ports is None:
                return None
            if not observation.hosts[hosts[0]].isolated:
                return GangConnection(Network.BRIDGE, (_LOOPBACK,) * len(hosts), ports)
            return GangConnection(Network.HOST, tuple(observation.hosts[host].address for host in hosts), ports)
        network = Network.OVERLAY if several else Network.BRIDGE
        subnet = waiting.subnet if waiting.network is network else None
        subnet = subnet or self._take_subnet(network, len(hosts))
        if subnet is None:
            return None
        attempt = max(job.attempt for job in waiting.gang)
        addresses = tuple(choose_addresses(subnet, network, len(hosts), attempt))
        network_host = choose_network_host(observation, hosts) if several else None
        return GangConnection(network, addresses, (None,) * len(hosts), subnet, network_host)

    def _take_subnet(self, network: Network, jobs: int) -> str | None:
        if self._subnets is None:
            self._subnets = find_free_subnets(self._experiments, self._observation)
        if self._head_jobs is not None:
            across = Network.BRIDGE if self._observation.network is Network.HOST else self._observation.network
            self._subnets.take(count_addresses(across, self._head_jobs))
            self._head_jobs = None
        return self._subnets.take(count_addresses(network, jobs))

    def _take_ports(self, hosts: tuple[HostName, ...]) -> tuple[int, ...] | None:
        if self._ports is None:
            self._ports = PortAllocator(self._experiments, self._observation.hosts)
        allocator = self._ports
        ports_of = {host: allocator.take(host, hosts.count(host)) for host in sorted(set(hosts))}
        lists = {host: iter(ports) for host, ports in ports_of.items() if ports is not None}
        return tuple(next(lists[host]) for host in hosts) if len(lists) == len(ports_of) else None


def needs_ports(observation: Observation, hosts: tuple[HostName, ...]) -> bool:
    """Return True when the jobs of a gang on these hosts share the addresses of their machines, and so need ports."""
    first = observation.hosts[hosts[0]]
    return not first.isolated or (observation.network is Network.HOST and (len(set(hosts)) > 1 or bool(first.address)))


def choose_network_host(observation: Observation, hosts: tuple[HostName, ...]) -> HostName | None:
    """Return the swarm manager that creates the network of a gang: the first one among the gang's own hosts, otherwise
    the first one of their swarm. None: the swarm has no leader, or no host that answers manages it.
    """
    swarm = next((observation.hosts[host].swarm for host in hosts if host in observation.hosts), "")
    managers = [
        name
        for name, host in sorted(observation.hosts.items())
        if host.manager and host.swarm == swarm and host.silent_since is None and not host.leaderless
    ]
    return next((name for name in managers if name in hosts), managers[0] if swarm and managers else None)


def repair_networks(world: World, observation: Observation) -> World:
    """Return the world after repairing the networks that cannot be created as planned.

    A gang whose subnet another network uses on some host gets another subnet. A gang whose network host was lost before
    it created the network, or has no leader meanwhile, gets another network host.
    """
    refused = frozenset(
        (action.experiment, action.subnet)
        for action, problem in observation.problems.items()
        if isinstance(action, PrepareHost) and problem.subnet_taken
    )
    experiments = list(world.experiments)
    for index, experiment in enumerate(experiments):
        if experiment.placed_at is None or experiment.subnet is None:
            continue
        if (experiment.id, experiment.subnet) in refused and any(job.state in PLACED for job in experiment.gang):
            experiments[index] = _replace_subnet(experiment, tuple(experiments), observation)
        elif experiment.network_host is not None and _network_host_is_lost(experiment, observation):
            hosts = tuple(job.host for job in experiment.gang if job.host is not None)
            creator = choose_network_host(observation, hosts) or experiment.network_host
            experiments[index] = replace(experiment, network_host=creator)
    return World(tuple(experiments))


def _replace_subnet(
    experiment: Experiment, experiments: tuple[Experiment, ...], observation: Observation
) -> Experiment:
    gang = experiment.gang
    subnet = find_free_subnets(experiments, observation).take(count_addresses(experiment.network, len(gang)))
    if subnet is None:
        return experiment
    attempt = max(job.attempt for job in gang)
    addresses = choose_addresses(subnet, experiment.network, len(gang), attempt)
    pairs = dict(zip((job.name for job in gang), addresses, strict=True))
    jobs = tuple(replace(job, address=pairs[job.name]) if job.name in pairs else job for job in experiment.jobs)
    return replace(experiment, subnet=subnet, jobs=jobs)


def _network_host_is_lost(experiment: Experiment, observation: Observation) -> bool:
    if not any(job.state is State.STARTING for job in experiment.gang):
        return False
    host = None if experiment.network_host is None else observation.hosts.get(experiment.network_host)
    return host is None or observation.is_lost(host) or (host.leaderless and experiment.id not in host.networks)
