"""`riseml pool remove`: take a host out of the swarm and out of pool.yml, and list what stays on it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from riseml import wire
from riseml.base.errors import Conflict, NotFound, Refused, RisemlError, UsageError
from riseml.base.names import HostName
from riseml.base.states import Network
from riseml.executors.capabilities import InventoryItem, InventoryKind
from riseml.executors.swarm_changes import Departure
from riseml.server.hosts.host_keys import find_pins
from riseml.server.hosts.host_set import HostSet
from riseml.server.hosts.pool_edit import rewrite_pool_file
from riseml.server.hosts.storage_mounts import describe_root
from riseml.spec.pool.file_edit import UneditableFile, remove_host
from riseml.spec.pool.loader import check_pool
from riseml.spec.pool.types import HostSpec
from riseml.spec.yaml.problems import Severity

log = logging.getLogger(__name__)


def dismiss_host(
    hosts: HostSet, host: HostSpec, jobs: Sequence[str], *, force: bool, dry_run: bool
) -> wire.RemovedHost:
    """Take a host out of the swarm and out of pool.yml, unless this is a dry run.

    Args:
        hosts: the hosts of the server.
        host: the host in pool.yml.
        jobs: the IDs of the jobs that run there.
        force: remove it although jobs run there, or the swarm would lose the majority of its managers.
        dry_run: only return what would happen.

    Raises:
        Refused: jobs run there, it is the only host, or the swarm would lose the majority of its managers.
        NotFound: the file has no such host any more.
    """
    path = hosts.settings.pool_file
    remains = _show_remains(hosts, host, jobs)
    if jobs and not force:
        raise Refused(
            f"{len(jobs)} job{'' if len(jobs) == 1 else 's'} run{'s' if len(jobs) == 1 else ''} on host {host.name}: "
            f"{', '.join(jobs[:5])}{', ...' if len(jobs) > 5 else ''}",
            f"`riseml pool drain {host.name}` gives it no new jobs; remove it when they have ended, or with --force",
        )
    _remove_from_text(path, path.read_text(encoding="utf-8"), host.name)
    if dry_run:
        return remains
    departure = _leave_swarm(hosts, host.name, force=force)
    rewrite_pool_file(path, lambda text: _remove_from_text(path, text, host.name))
    return {**remains, "removed": True, "departure": departure}


def _leave_swarm(
    hosts: HostSet, name: HostName, *, force: bool
) -> Literal["none", "left", "removed", "shared", "services", "kept"]:
    """Take a host out of the swarm of the pool, where it has one, and return what happened.

    Raises:
        RisemlError: the swarm would lose the majority of its managers, or an engine refuses; not with `force`.
    """
    if hosts.network is not Network.OVERLAY or not any(host.swarm for host in hosts.last_seen().values()):
        return Departure.NONE.value
    try:
        return hosts.swarm.leave(name).value
    except RisemlError as error:
        if not force:
            raise
        log.warning("host %s keeps its place in the swarm: %s", name, error.message)
        return "kept"


def _remove_from_text(path: Path, text: str, name: HostName) -> str:
    """Return the text of pool.yml without a host; the text may be newer than the one that the server has read."""
    spec = check_pool(text, path).spec
    if spec is None:
        raise UsageError(f"{path} has problems, so that no host can be removed", "`riseml pool` names them")
    names = [host.name for host in spec.hosts]
    if name not in names:
        raise NotFound(f"the pool has no host {name}", f"its hosts: {', '.join(names)}")
    if len(names) == 1:
        hint = f"remove {path} to use this machine alone; the jobs on {name} would be lost"
        raise Conflict(f"{name} is the only host of the pool", hint)
    try:
        fresh = remove_host(text, names.index(name))
    except UneditableFile as error:
        message = f"{path} is written so that riseml cannot take the lines of {name} out: {error.message}"
        raise UneditableFile(message, "remove them by hand; the server notices it") from error
    for problem in check_pool(fresh, path).problems:
        if problem.severity is Severity.ERROR:
            raise UsageError(f"without {name}, pool.yml has a problem: {problem.problem}", problem.hint or None)
    return fresh


def _show_remains(hosts: HostSet, host: HostSpec, jobs: Sequence[str]) -> wire.RemovedHost:
    """Return the objects on the host; they stay there."""
    listing = _list_items(hosts, host.name)
    items = listing or []
    last_seen = hosts.last_seen().get(host.name)
    environments = [item for item in items if item.kind is InventoryKind.ENVIRONMENT]
    images = [item for item in items if item.kind in (InventoryKind.ENVIRONMENT, InventoryKind.CODE)]
    return {
        "name": host.name,
        "removed": False,
        "file": str(hosts.settings.pool_file),
        "jobs": list(jobs),
        "answers": listing is not None,
        "containers": sum(item.kind is InventoryKind.CONTAINER for item in items),
        "networks": sum(item.kind is InventoryKind.NETWORK for item in items),
        "environments": len(environments),
        "size": sum(item.size or 0 for item in images),
        "swarm": "" if last_seen is None or not last_seen.swarm else "manager" if last_seen.manager else "member",
        "departure": "",
        "output": describe_root(hosts.roots.output),
        "shared_output": hosts.shared_output,
        "known_hosts": find_pins(host, hosts.settings.home),
    }


def _list_items(hosts: HostSet, name: HostName) -> list[InventoryItem] | None:
    """Return the objects of riseml on a host; None when it does not answer, or has no inventory."""
    executor = hosts.pool.executors.get(name)
    inventory = None if executor is None else executor.capabilities.inventory
    if inventory is None:
        return None
    try:
        return inventory.list_inventory(frozenset())
    except RisemlError:
        return None
