"""The routes of the pool: what it is, whether it is fit, and which hosts get nothing new."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query

from riseml import wire
from riseml.control.placement.ledger import free_room
from riseml.errors import NotFound, UsageError
from riseml.model import Experiment, HostSeen
from riseml.names import HostName, experiment_name
from riseml.server.api.waiting import wait_for_hosts, wait_for_pool_file
from riseml.server.clock import now
from riseml.server.pool.checkup import check_pool
from riseml.server.pool.choose_executor import PROCESS
from riseml.server.services import Services
from riseml.spec.pool.types import HostSpec, Volume
from riseml.states import PLACED

Name = Annotated[str, Path(max_length=100)]

Fingerprints = Annotated[list[Annotated[str, Query(max_length=100)]], Query(min_length=1, max_length=20)]
HostState = Literal["up", "silent", "draining", "drained"]


def add_pool_routes(router: APIRouter, services: Services) -> None:
    """Everything below /pool."""

    @router.get("/pool")
    def read_pool() -> wire.PoolView:
        wait_for_hosts(services)  # an idle loop looks rarely, and a person who asks wants to know how it is now
        return _show_pool(services)

    @router.post("/pool/check")
    def check() -> wire.PoolFindings:
        wait_for_pool_file(services)
        _demand_file(services)
        return {"findings": check_pool(services.hosts)}

    @router.post("/pool/join")
    def join() -> wire.PoolMembers:
        wait_for_pool_file(services)
        _demand_file(services)
        found = services.hosts.join()
        wait_for_hosts(services)
        return {"members": [{"host": name, "membership": how.value} for name, how in sorted(found.items())]}

    _add_host_routes(router, services)


def _add_host_routes(router: APIRouter, services: Services) -> None:
    @router.post("/pool/hosts/{name}/drain")
    def drain(name: Name) -> wire.HostView:
        services.drained.drain_host(_demand_host(services, name), now())
        return _show_one(services, name)

    @router.post("/pool/hosts/{name}/resume")
    def resume(name: Name) -> wire.HostView:
        services.drained.resume_host(_demand_host(services, name))
        return _show_one(services, name)

    @router.get("/pool/hosts/{name}/keys")
    def show_keys(name: Name) -> wire.HostKeys:
        wait_for_pool_file(services)
        return services.hosts.show_host_keys(_demand_spec(services, name))

    @router.post("/pool/hosts/{name}/keys")
    def pin(name: Name, fingerprint: Fingerprints) -> wire.HostKeys:
        wait_for_pool_file(services)
        keys = services.hosts.pin_host_keys(_demand_spec(services, name), frozenset(fingerprint))
        services.wake.set()
        return keys


def show_hosts(services: Services) -> list[wire.HostView]:
    """Every host, whether it has ever answered or not, by name: the order of every list of hosts."""
    experiments = services.experiments.load_world().experiments
    seen = services.hosts.pool.last_seen()
    room = free_room(experiments, seen)
    drained = services.drained.load_drained()
    shown: list[wire.HostView] = []
    for name in sorted(services.hosts.pool.executors):
        host, free = seen.get(name), room.get(name)
        capacity = None if host is None else host.capacity
        jobs = _jobs_on(experiments, name)
        shown.append(
            {
                "name": name,
                "state": _state(host, drained=name in drained, busy=bool(jobs)),
                "drained": name in drained,
                "message": _trouble(services, name),
                "url": services.hosts.engines[name].url if name in services.hosts.engines else "",
                "address": "" if host is None else host.address,
                "swarm": "" if host is None or not host.swarm else "manager" if host.manager else "member",
                "labels": {} if host is None else dict(host.labels),
                "jobs": jobs,
                "engine": services.hosts.pool.executors[name].describe() if _answers(host) else "",
                "cpus": capacity.cpus if capacity else 0.0,
                "mem_mib": capacity.mem if capacity else 0,
                "gpus": len(capacity.gpus) if capacity else 0,
                "cpus_used": round(capacity.cpus - free.cpus, 3) if capacity and free else 0.0,
                "mem_mib_used": capacity.mem - free.mem if capacity and free else 0,
                "gpus_used": len(capacity.gpus) - len(free.gpus) if capacity and free else 0,
            }
        )
    return shown


def _show_pool(services: Services) -> wire.PoolView:
    hosts, trouble = services.hosts, services.hosts.trouble
    return {
        "file": None if hosts.spec is None else str(services.settings.pool_file),
        "trouble": "" if trouble is None else trouble.message,
        "network": hosts.network.value,
        "output": _show_root(hosts.roots.output),
        "data": _show_root(hosts.roots.data),
        "shared_output": hosts.shared_output,
        "hosts": show_hosts(services),
    }


def _show_one(services: Services, name: str) -> wire.HostView:
    services.wake.set()
    return next(host for host in show_hosts(services) if host["name"] == name)


def _show_root(root: str | Volume) -> str:
    return f"volume {root.name}" if isinstance(root, Volume) else root


def _jobs_on(experiments: tuple[Experiment, ...], host: HostName) -> list[str]:
    return [
        f"{experiment_name(experiment.number, experiment.sub)}.{job.name}"
        for experiment in experiments
        for job in experiment.jobs
        if job.host == host and job.state in PLACED
    ]


def _answers(host: HostSeen | None) -> bool:
    return host is not None and host.silent_since is None


def _state(host: HostSeen | None, *, drained: bool, busy: bool) -> HostState:
    if not _answers(host):
        return "silent"
    if drained:
        return "draining" if busy else "drained"
    return "up"


def _trouble(services: Services, name: HostName) -> str:
    error = services.hosts.pool.troubles().get(name)
    return "" if error is None else error.message


def _demand_file(services: Services) -> tuple[HostSpec, ...]:
    hosts = services.hosts
    trouble = hosts.trouble
    if hosts.spec is None and trouble is not None:
        raise UsageError(f"there is no pool, since its file cannot be used: {trouble.message}", trouble.hint)
    if hosts.spec is None and hosts.name == PROCESS and services.settings.pool_file.exists():
        raise UsageError(
            f"{services.settings.pool_file} is not used: this server runs jobs as processes of this machine",
            "unset RISEML_EXECUTOR; after `riseml server stop` the next command uses the pool",
        )
    if hosts.spec is None:
        raise UsageError(
            "there is no pool: jobs run on this machine",
            f"name your hosts in {services.settings.pool_file}; pool.yml.example shows how",
        )
    return hosts.spec.hosts


def _demand_spec(services: Services, name: str) -> HostSpec:
    specs = {spec.name: spec for spec in _demand_file(services)}
    return specs[_demand_host(services, name)]


def _demand_host(services: Services, name: str) -> HostName:
    if name not in services.hosts.pool.executors:
        known = ", ".join(sorted(services.hosts.pool.executors))
        raise NotFound(f"the pool has no host {name}", f"its hosts: {known}")
    return HostName(name)
