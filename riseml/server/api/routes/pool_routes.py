"""The routes of the pool: its hosts, keys, GPUs, queue, use and leftovers."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Body, Depends, Path, Query

from riseml import wire
from riseml.base.errors import NotFound, UsageError
from riseml.base.names import HostName
from riseml.base.records import dataclass
from riseml.base.settings import PROCESS
from riseml.base.states import Network
from riseml.control.observation import Observation
from riseml.model import Experiment, Job
from riseml.server.api.callers import CallerOf
from riseml.server.api.parameters import read_group
from riseml.server.api.submissions.submit import check_text
from riseml.server.api.views.explain import show_queue
from riseml.server.api.views.pool_usage import CpuUsageSum
from riseml.server.api.views.pool_views import list_file_findings, list_jobs_on, show_hosts, show_pool
from riseml.server.api.views.record_views import show_time
from riseml.server.api.waiting import wait_for_hosts, wait_for_pool_file
from riseml.server.clock import now
from riseml.server.data.clean import Cleaner, Cleaning, Leftover
from riseml.server.data.disk_reclaimer import DiskReclaimer, DiskState
from riseml.server.data.leftover_judge import CleanRequest
from riseml.server.hosts.admission import admit_host
from riseml.server.hosts.checkup import check_pool
from riseml.server.hosts.choose_executor import refuse_cluster, require_login_entry
from riseml.server.hosts.dismissal import dismiss_host
from riseml.server.hosts.host_keys import pin_host_keys, scan_host_keys
from riseml.server.hosts.host_set import HostSet
from riseml.server.hosts.mode import PoolMode
from riseml.server.hosts.swarm_members import show_members, show_recovery
from riseml.server.log_line import LogLine, write_line
from riseml.server.services import Services, Stores, Watchers
from riseml.server.usage.gpu_readings import find_holders, read_all_gpus, show_gpus
from riseml.spec.pool.types import HostSpec
from riseml.store.experiment_pages import PageQuery, PageSort
from riseml.store.samples.sample_rows import Span

_MOST_EXPLAINED = 100  # experiments of the queue
_MOST_HOURS = 7 * 24
_MINUTE = 60  # seconds
_HOUR = 3600  # seconds
_MOST_POINTS = 240  # points of a host
_MOST_SAMPLED_JOBS = 400  # jobs whose samples are read for one answer
_MOST_ENDED = 200  # experiments, the last that have ended, that are examined

Name = Annotated[str, Path(max_length=100)]
Fingerprints = Annotated[list[Annotated[str, Query(max_length=100)]], Query(min_length=1, max_length=20)]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _CleanQuery:
    """The query of both routes of leftovers."""

    caches: bool = False
    days: Annotated[int, Query(ge=0, le=36_500)] = 30
    foreign: Annotated[str, Query(max_length=64, pattern="^[0-9a-f]*$")] = ""


def add_pool_routes(router: APIRouter, services: Services) -> None:
    """Add everything below /pool."""

    @router.get("/pool")
    def read_pool(caller: CallerOf) -> wire.PoolView:
        wait_for_hosts(services.loops)
        return show_pool(services, caller)

    @router.post("/pool/check")
    def check() -> wire.PoolFindings:
        wait_for_pool_file(services)
        if services.hosts.rules is None or services.hosts.trouble is not None:
            _require_pool(services)  # on a team's server, what jobs reach matters on one machine, too
        return {"findings": [*list_file_findings(services), *check_pool(services.hosts)]}

    @router.post("/pool/join")
    def join() -> wire.PoolMembers:
        wait_for_pool_file(services)
        _require_pool(services)
        _require_engines(services.hosts)
        members = services.hosts.swarm.join()
        wait_for_hosts(services.loops)
        return {"members": show_members(members)}

    _add_recovery_route(router, services)
    _add_change_routes(router, services)
    _add_drain_routes(router, services)
    _add_key_routes(router, services)


def _add_recovery_route(router: APIRouter, services: Services) -> None:
    @router.post("/pool/recover")
    def recover(*, host: Annotated[str, Query(max_length=100)] = "", dry_run: bool = True) -> wire.PoolRecovery:
        wait_for_pool_file(services)
        _require_pool(services)
        _require_engines(services.hosts)
        _require_swarm(services.hosts)
        plan = services.hosts.swarm.plan_recovery(_require_host(services.hosts, host) if host else None)
        experiments = services.stores.experiments.load_world().experiments
        if dry_run:
            return show_recovery(plan, experiments)
        memberships = services.hosts.swarm.recover(plan)
        write_line(log, LogLine(f"the swarm of the pool has a new majority, managed by {plan.leader}"))
        wait_for_hosts(services.loops)
        return show_recovery(plan, experiments, memberships)


def _add_change_routes(router: APIRouter, services: Services) -> None:
    @router.post("/pool/hosts")
    def add(new: Annotated[wire.NewHost, Body()]) -> wire.AddedHost:
        check_text(new)
        wait_for_pool_file(services)
        _require_engines(services.hosts)
        _require_change(services)
        experiments = services.stores.experiments.load_world().experiments
        jobs = {name: list_jobs_on(experiments, name) for name in services.hosts.names}
        answer = admit_host(services.hosts, new, jobs)
        if answer["state"] == "added":
            name = HostName(answer["name"])
            write_line(log, LogLine(f"host {name} added to the pool", host=name))
            services.loops.wake.set()
            wait_for_pool_file(services)
        return answer

    @router.post("/pool/hosts/{name}/remove")
    def remove(name: Name, *, force: bool = False, dry_run: bool = False) -> wire.RemovedHost:
        wait_for_pool_file(services)
        _require_engines(services.hosts)
        host = _require_entry(services, name)
        jobs = list_jobs_on(services.stores.experiments.load_world().experiments, host.name)
        answer = dismiss_host(services.hosts, host, jobs, force=force, dry_run=dry_run)
        if answer["removed"]:
            services.stores.drained.resume_host(host.name)  # a host that is added again gets jobs
            write_line(log, LogLine(f"host {name} removed from the pool", host=host.name))
            services.loops.wake.set()
            wait_for_pool_file(services)
        return answer


def _add_drain_routes(router: APIRouter, services: Services) -> None:
    @router.post("/pool/hosts/{name}/drain")
    def drain(name: Name) -> wire.HostView:
        host = _require_host(services.hosts, name)
        services.stores.drained.drain_host(host, now())
        write_line(log, LogLine(f"host {host} drained: it gets no new jobs", host=host))
        return _wake_and_show(services, name)

    @router.post("/pool/hosts/{name}/resume")
    def resume(name: Name) -> wire.HostView:
        host = _require_host(services.hosts, name)
        services.stores.drained.resume_host(host)
        write_line(log, LogLine(f"host {host} resumed: it gets new jobs again", host=host))
        return _wake_and_show(services, name)


def _add_key_routes(router: APIRouter, services: Services) -> None:
    home = services.settings.home

    @router.get("/pool/hosts/{name}/keys")
    def show_keys(name: Name) -> wire.HostKeys:
        wait_for_pool_file(services)
        return scan_host_keys(_require_ssh_entry(services, name), home)

    @router.post("/pool/hosts/{name}/keys")
    def pin(name: Name, fingerprint: Fingerprints) -> wire.HostKeys:
        wait_for_pool_file(services)
        entry = _require_ssh_entry(services, name)
        keys = pin_host_keys(entry, home, frozenset(fingerprint))
        services.hosts.reconnect(entry.name)
        services.loops.wake.set()
        return keys


def _wake_and_show(services: Services, name: str) -> wire.HostView:
    services.loops.wake.set()
    return next(host for host in show_hosts(services) if host["name"] == name)


def _require_engines(hosts: HostSet) -> None:
    """Check that the pool has hosts of its own.

    Raises:
        UsageError: it is a cluster, which adds and connects its nodes itself.
    """
    if isinstance(hosts.mode, PoolMode):
        refuse_cluster(hosts.mode.spec)


def _require_swarm(hosts: HostSet) -> None:
    """Check that the hosts of the pool are to be in one swarm.

    Raises:
        UsageError: there is one host, or jobs use the network of the hosts.
    """
    if hosts.network is not Network.OVERLAY:
        raise UsageError("this pool needs no Docker swarm", "only `network: overlay` with several hosts needs one")


def _require_change(services: Services) -> None:
    """Check that this server can create or extend a pool.yml.

    Raises:
        UsageError: the present file has problems, or this server uses none.
    """
    trouble = services.hosts.trouble
    if trouble is not None:
        raise UsageError(f"pool.yml cannot be used, so that nothing is added: {trouble.message}", trouble.hint)
    if services.settings.executor == PROCESS:
        raise UsageError(
            "this server runs jobs as processes of this machine, and uses no pool",
            "unset RISEML_EXECUTOR; `riseml server stop`, then try again",
        )


def _require_pool(services: Services) -> tuple[HostSpec, ...]:
    """Return the hosts of pool.yml.

    Raises:
        UsageError: no pool.yml is in force; with the reason.
    """
    hosts = services.hosts
    path = services.settings.pool_file
    if isinstance(hosts.mode, PoolMode):
        return hosts.mode.spec.hosts
    if hosts.trouble is not None:
        message = f"there is no pool, since its file cannot be used: {hosts.trouble.message}"
        raise UsageError(message, hosts.trouble.hint)
    if hosts.executor_name == PROCESS and path.exists():
        raise UsageError(
            f"{path} is not used: this server runs jobs as processes of this machine",
            "unset RISEML_EXECUTOR; after `riseml server stop` the next command uses the pool",
        )
    raise UsageError(
        "there is no pool: jobs run on this machine", f"name your hosts in {path}; pool.yml.example shows how"
    )


def _require_entry(services: Services, name: str) -> HostSpec:
    """Return the entry of a host in pool.yml.

    Raises:
        NotFound: it names no such host.
        UsageError: no pool.yml is in force.
    """
    entries = {entry.name: entry for entry in _require_pool(services)}
    return entries[_require_host(services.hosts, name)]


def _require_ssh_entry(services: Services, name: str) -> HostSpec:
    """Return what pool.yml says of a host, or of the login node of its cluster.

    Raises:
        NotFound: it names no such host.
        UsageError: no pool.yml is in force, or the server's own machine is the login node.
    """
    mode = services.hosts.mode
    if not isinstance(mode, PoolMode) or mode.spec.hosts:
        return _require_entry(services, name)
    _require_host(services.hosts, name)
    return require_login_entry(mode.spec)


def _require_host(hosts: HostSet, name: str) -> HostName:
    """Return the name of a host.

    Raises:
        NotFound: the pool has no such host.
    """
    names = hosts.names
    if name not in names:
        raise NotFound(f"the pool has no host {name}", f"its hosts: {', '.join(names)}")
    return HostName(name)


def add_pool_history_routes(router: APIRouter, services: Services) -> None:
    """Add /pool/queue, and /pool/usage, the use of the hosts over the last hours, for the page of the pool."""

    @router.get("/pool/queue")
    def read_queue(
        caller: CallerOf, limit: Annotated[int, Query(ge=1, le=_MOST_EXPLAINED)] = _MOST_EXPLAINED
    ) -> wire.QueueView:
        if services.loops.passes.observation is None:
            wait_for_hosts(services.loops)
        observation = services.loops.passes.observation or Observation(now(), {})
        world = replace(services.stores.experiments.load_world(), reader=caller)
        return show_queue(world, observation, services.hosts.names, limit)

    @router.get("/pool/usage")
    def read_usage(caller: CallerOf, hours: Annotated[int, Query(ge=1, le=_MOST_HOURS)] = 6) -> wire.PoolUsage:
        end = int(now().timestamp()) + 1
        span = Span(end - hours * _HOUR, end)
        step = -(-hours * _HOUR // _MOST_POINTS // _MINUTE) * _MINUTE or _MINUTE
        usage = CpuUsageSum(span, step)
        left_out = 0
        jobs = _list_jobs_since(services.stores, datetime.fromtimestamp(span.since, UTC))
        for count, (experiment, job) in enumerate(jobs):
            if count < _MOST_SAMPLED_JOBS:
                _add_job_use(usage, experiment, job, services.watchers)
            else:
                left_out += 1
        since, until = (f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}" for at in (span.since, span.until))
        hosts = usage.show({host["name"]: host for host in show_hosts(services, caller)})
        return {
            "since": since,
            "until": until,
            "step": step,
            "time": usage.moments,
            "hosts": hosts,
            "left_out": left_out,
        }


def _add_job_use(usage: CpuUsageSum, experiment: Experiment, job: Job, watchers: Watchers) -> None:
    try:
        usage.add_job(job, watchers.samples.store.read_minutes(experiment.id, job.name, usage.span))
    except OSError as error:
        log.warning("the samples of experiment %s cannot be read: %s", experiment.number, error)


def _list_jobs_since(stores: Stores, since: datetime) -> Iterator[tuple[Experiment, Job]]:
    """Yield the jobs of all users that may have run since a moment: the use of a host has no name of an experiment."""
    for user in stores.names.list_users():
        yield from _list_jobs_of(user, stores, since)


def _list_jobs_of(user: str, stores: Stores, since: datetime) -> Iterator[tuple[Experiment, Job]]:
    """Yield the jobs of one user: those that run, then those that have ended, the last first."""
    running = stores.experiments.list_experiments(user, ended=False, project=None, limit=None)
    query = PageQuery(PageSort.ENDED, limit=_MOST_ENDED)
    listed_ids: set[int] = set()
    for detail in (*running, *stores.pages.read_page(user, query)):
        experiment = detail.experiment
        if (
            experiment.id in listed_ids
            or experiment.started_at is None
            or (experiment.ended_at is not None and experiment.ended_at < since)
        ):
            continue
        listed_ids.add(experiment.id)
        yield from ((experiment, job) for job in experiment.gang if job.host is not None)


def add_clean_routes(router: APIRouter, cleaner: Cleaner, disks: DiskReclaimer) -> None:
    """Add /leftovers, which lists them, and /leftovers/remove."""

    @router.get("/leftovers")
    def read_leftovers(query: Annotated[_CleanQuery, Depends(read_group(_CleanQuery))]) -> wire.LeftoversView:
        return _show_cleaning(cleaner.find_leftovers(_make_clean_request(query), now()), disks)

    @router.post("/leftovers/remove")
    def remove_leftovers(query: Annotated[_CleanQuery, Depends(read_group(_CleanQuery))]) -> wire.LeftoversView:
        return _show_cleaning(
            cleaner.remove_leftovers(cleaner.find_leftovers(_make_clean_request(query), now())), disks
        )


def _make_clean_request(query: _CleanQuery) -> CleanRequest:
    return CleanRequest(query.caches, timedelta(days=query.days), query.foreign)


def _show_cleaning(cleaning: Cleaning, disks: DiskReclaimer) -> wire.LeftoversView:
    return {
        "leftovers": [_show_leftover(leftover) for leftover in cleaning.leftovers],
        "others": cleaning.foreign,
        "silent": [str(host) for host in cleaning.silent],
        "disks": [_show_disk(disk, disks.mark or 0) for disk in disks.list_disks()],
    }


def _show_disk(disk: DiskState, mark: int) -> wire.DiskView:
    return {
        "places": [str(place) for place in disk.places],
        "percent": disk.percent,
        "clean_above": mark,
        "removed": disk.removed,
        "removed_at": show_time(disk.removed_at),
        "stuck": disk.is_stuck,
    }


def _show_leftover(leftover: Leftover) -> wire.LeftoverView:
    item = leftover.item
    return {
        "kind": item.kind.value,
        "name": item.name,
        "host": leftover.host,
        "server": item.server,
        "size": item.size,
        "made_at": show_time(item.made_at),
        "why": leftover.why,
        "removed": leftover.removed,
        "problem": leftover.problem,
    }


def add_gpu_routes(router: APIRouter, services: Services) -> None:
    """Add /gpus: the models of the GPUs, their load, and the jobs that have them."""

    @router.get("/gpus")
    def read_gpus(caller: CallerOf, of: Annotated[str, Query(max_length=300)] = "") -> wire.GpuList:
        wait_for_hosts(services.loops)
        holders = find_holders(services.stores.experiments.load_world().experiments, caller)
        return show_gpus(read_all_gpus(services.hosts.pool), holders, of)
