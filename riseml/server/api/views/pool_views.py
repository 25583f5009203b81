"""The pool and its hosts in the shapes of the HTTP API."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from riseml import wire
from riseml.base.names import HostName
from riseml.base.records import dataclass
from riseml.base.states import PLACED
from riseml.control.placement.free import FreeResources, find_free_resources
from riseml.control.placement.leaders import describe_leaderless
from riseml.control.visible_names import name_for
from riseml.model import Caller, Experiment, HostObservation
from riseml.server.clock import now
from riseml.server.hosts.host_set import HostSet
from riseml.server.hosts.mode import PoolMode
from riseml.server.hosts.storage_mounts import describe_root
from riseml.server.services import Loops, Services

HIDDEN_JOB = "another user's job"

HostState = Literal["up", "silent", "draining", "drained"]


def show_pool(services: Services, caller: Caller) -> wire.PoolView:
    """Return the pool of pool.yml with the state of each host."""
    hosts = services.hosts
    return {
        "file": str(services.settings.pool_file) if isinstance(hosts.mode, PoolMode) else None,
        "trouble": "" if hosts.trouble is None else hosts.trouble.message,
        "network": hosts.network.value,
        "swarm_trouble": find_swarm_trouble(services.loops),
        "output": describe_root(hosts.roots.output),
        "data": describe_root(hosts.roots.data),
        "shared_output": hosts.shared_output,
        "hosts": show_hosts(services, caller),
        "gone": find_gone_hosts(services, caller),
    }


def find_gone_hosts(services: Services, caller: Caller | None = None) -> list[wire.GoneHost]:
    """Return the hosts that pool.yml does not name any more, and on which jobs still run."""
    names = frozenset(services.hosts.names)
    moment = now()
    limit = services.settings.lost_after
    left: dict[HostName, float] = {}  # seconds
    experiments = services.stores.experiments.load_world().experiments
    for job in (job for experiment in experiments for job in experiment.gang):
        if job.host is not None and job.host not in names and job.state in PLACED:
            silent = 0.0 if job.unseen_since is None else (moment - job.unseen_since).total_seconds()
            left[job.host] = min(left.get(job.host, limit), max(0.0, limit - silent))
    return [
        {"host": name, "jobs": list_jobs_on(experiments, name, caller), "seconds_left": seconds}
        for name, seconds in sorted(left.items())
    ]


def list_file_findings(services: Services) -> list[wire.PoolFinding]:
    """Return what `pool check` finds in pool.yml itself: its problems, and hosts with jobs that it does not name."""
    trouble = services.hosts.trouble
    findings = list[wire.PoolFinding]()
    if trouble is not None:
        message = f"it has changed and is not in use: {trouble.message}"
        findings.append({"host": "", "topic": "file", "outcome": "failed", "message": message})
    for gone_host in find_gone_hosts(services):
        jobs = ", ".join(gone_host["jobs"])
        message = f"is not in pool.yml any more, and these jobs run there, and count as lost soon: {jobs}"
        findings.append({"host": gone_host["host"], "topic": "file", "outcome": "failed", "message": message})
    return findings


def find_swarm_trouble(loops: Loops) -> str:
    """Return why the swarm of the hosts has no leader, as the last pass saw it, and what to do; else an empty text."""
    observation = loops.passes.observation
    return "" if observation is None else describe_leaderless(observation)


def show_hosts(services: Services, caller: Caller | None = None) -> list[wire.HostView]:
    """Return every host, whether it has ever answered or not, sorted by name."""
    experiments = services.stores.experiments.load_world().experiments
    hosts = services.hosts
    last_seen = hosts.last_seen()
    drained = services.stores.drained.load_drained()
    room = find_free_resources(experiments, last_seen)
    views: list[wire.HostView] = []
    for name in hosts.names:
        host = last_seen.get(name)
        amounts = _show_amounts(host, room.get(name))
        jobs = list_jobs_on(experiments, name, caller)
        views.append(
            {
                "name": name,
                "state": _find_state(host, drained=name in drained, busy=bool(jobs)),
                "drained": name in drained,
                "message": _find_trouble(hosts, name),
                "url": hosts.find_url(name),
                "address": "" if host is None else host.address,
                "swarm": "" if host is None or not host.swarm else "manager" if host.manager else "member",
                "labels": {} if host is None else dict(host.labels),
                "jobs": jobs,
                "engine": hosts.describe_executor(name) if _is_answering(host) else "",
                "cpus": amounts.cpus,
                "mem_mib": amounts.mem,
                "gpus": amounts.gpus,
                "gpu_mem_mib": amounts.gpu_mem,
                "gpu_driver": _name_driver(host),
                "cpus_used": amounts.cpus_used,
                "mem_mib_used": amounts.mem_used,
                "gpus_used": amounts.gpus_used,
            }
        )
    return views


@dataclass(frozen=True, slots=True)
class _Amounts:
    """What a host has, and what jobs have of it: cores, MiB, GPUs and their MiB; all 0 for one that never answered."""

    cpus: float = 0.0
    mem: int = 0
    gpus: int = 0
    gpu_mem: int = 0
    cpus_used: float = 0.0
    mem_used: int = 0
    gpus_used: int = 0


def _show_amounts(host: HostObservation | None, free: FreeResources | None) -> _Amounts:
    if host is None:
        return _Amounts()
    capacity = host.capacity
    gpu_mem = sum(host.devices[identity].mem for identity in capacity.gpus if identity in host.devices)
    whole = _Amounts(capacity.cpus, capacity.mem, len(capacity.gpus), gpu_mem)
    if free is None:
        return whole
    return replace(
        whole,
        cpus_used=round(capacity.cpus - free.cpus, 3),
        mem_used=capacity.mem - free.mem,
        gpus_used=len(capacity.gpus) - len(free.gpus),
    )


def _name_driver(host: HostObservation | None) -> str:
    """Return the version of the driver of a host's GPUs; empty without a known one."""
    return next((gpu.driver for gpu in host.devices.values()), "") if host is not None else ""


def list_jobs_on(experiments: tuple[Experiment, ...], host: HostName, caller: Caller | None = None) -> list[str]:
    """Return the IDs of the jobs that hold a place on a host, as a caller knows them."""
    return [
        HIDDEN_JOB if (name := name_for(caller, experiment)) is None else f"{name}.{job.name}"
        for experiment in experiments
        for job in experiment.jobs
        if job.host == host and job.state in PLACED
    ]


def _is_answering(host: HostObservation | None) -> bool:
    return host is not None and host.silent_since is None


def _find_state(host: HostObservation | None, *, drained: bool, busy: bool) -> HostState:
    if not _is_answering(host):
        return "silent"
    if drained:
        return "draining" if busy else "drained"
    return "up"


def _find_trouble(hosts: HostSet, name: HostName) -> str:
    error = hosts.find_troubles().get(name)
    return "" if error is None else error.message
