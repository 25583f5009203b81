"""The server, the hosts, the pool and leftovers as lines. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from riseml.cli.output.style import Style
from riseml.cli.output.tables import Column, build_table
from riseml.cli.output.text import clean_text, count_noun, format_fields, format_seconds
from riseml.files.project.messages import format_size, join_first

if TYPE_CHECKING:
    from riseml import wire

_HOSTS = (
    Column("HOST", shrinks=True),
    Column("STATE"),
    Column("CPUS Used/Total", right=True),
    Column("MEM Used/Total", right=True),
    Column("GPUS Used/Total", right=True),
    Column("GPU MEM", right=True),
)
_HOSTS_LONG = (*_HOSTS, Column("DRIVER"), Column("ENGINE"))
_UNKNOWN = "-"
_POOL_HOSTS = (
    Column("HOST", shrinks=True),
    Column("STATE"),
    Column("CPUS", right=True),
    Column("MEM", right=True),
    Column("GPUS", right=True),
    Column("SWARM"),
    Column("RUNS", shrinks=True),
)
_SELF_FINDINGS = (Column("CHECK"), Column("OUTCOME"), Column("FOUND", folds=True))
_SCHEMA_FILES = (Column("FILE"), Column("SCHEMA"))
_LEFTOVERS = (
    Column("KIND"),
    Column("NAME", shrinks=True),
    Column("HOST"),
    Column("SIZE", right=True),
    Column("WHY", shrinks=True),
)


def list_server(server: wire.ServerView) -> list[str]:
    """Return the fields of a server."""
    if server.get("state") == "standby":  # an older server has no standby
        return _list_standby(server)
    engine = f"docker ({server['engine'] or 'the hosts of pool.yml'})"
    return format_fields(
        [
            ("Server", f"riseml {server['version']}, process {server['pid']}, since {server['started_at']}"),
            ("Home", server["home"]),
            ("Executor", engine if server["executor"] == "docker" else server["executor"]),
            ("Note", server["note"]),
            ("Problem", server.get("problem", "")),  # an older server does not say
            ("Active experiments", str(server["active"])),
        ]
    )


def _list_standby(server: wire.ServerView) -> list[str]:
    """Return the fields of a server that waits to take the place of another one."""
    since = f", which has served since {server['holder_since']}" if server["holder_since"] else ""
    return format_fields(
        [
            ("Standby", f"riseml {server['version']}, process {server['pid']}, since {server['started_at']}"),
            ("Home", server["home"]),
            ("Waits for", f"{server['holder']}{since}"),
            ("Address", server["holder_address"]),
        ]
    )


def list_hosts(system: wire.SystemView, version: str, style: Style, *, long: bool = False) -> list[str]:
    """Return the versions, and a table of hosts with their total; `long` adds the server, the drivers and the engines
    of the hosts. `version` is that of the command.
    """
    heads = [*_list_versions(system, version), *(list_server(system["server"]) if long else []), ""]
    rows = []
    for host in system["hosts"]:
        row = [host["name"], _format_state(host), *_format_uses(host), _format_gpu_mem([host])]
        more = [host.get("gpu_driver") or _UNKNOWN, host["engine"] or _UNKNOWN]  # an older server names no driver
        rows.append([*row, *more] if long else row)
    rows.append([*_make_total(system["hosts"]), *(["", ""] if long else [])])
    return [*heads, *build_table(_HOSTS_LONG if long else _HOSTS, rows, style)]


def _list_versions(system: wire.SystemView, version: str) -> list[str]:
    """Return the versions of the command, the server and the engines, as RiseML 1.x printed those of its cluster."""
    engines: dict[str, list[str]] = {}
    for host in system["hosts"]:
        if host["engine"]:
            engines.setdefault(host["engine"], []).append(host["name"])
    named = (f"{engine} ({join_first(names)})" for engine, names in engines.items())
    return format_fields(
        [
            ("Client/Server Version", f"{version}/{system['server']['version']}"),
            ("Server ID", system["server"]["id"]),
            ("Engines", ", ".join(named)),
        ]
    )


def _make_total(hosts: Sequence[wire.HostView]) -> list[str]:
    """Return the row with the sums of all hosts; those that have never answered add nothing."""
    total = {
        name: sum(host[name] for host in hosts)
        for name in ("cpus_used", "cpus", "mem_mib_used", "mem_mib", "gpus_used", "gpus")
    }
    return ["Total", "", *_format_amounts(total), _format_gpu_mem(hosts)]


def _format_gpu_mem(hosts: Sequence[wire.HostView]) -> str:
    """Return the memory of all GPUs of some hosts; `-` where there is none, or none is known."""
    mib = sum(host.get("gpu_mem_mib", 0) for host in hosts)  # an older server does not say
    return f"{mib / 1024:.1f} GiB" if mib else _UNKNOWN


def list_pool(pool: wire.PoolView, style: Style) -> list[str]:
    """Return the fields of the pool and a table of its hosts."""
    rows = [
        [host["name"], _format_state(host), *_format_uses(host), host["swarm"] or "-", " ".join(host["jobs"]) or "-"]
        for host in pool["hosts"]
    ]
    return [*map(clean_text, _list_pool_heads(pool)), "", *build_table(_POOL_HOSTS, rows, style)]


def _list_pool_heads(pool: wire.PoolView) -> Iterator[str]:
    lacking = "pool.yml cannot be used" if pool["trouble"] else "there is no pool.yml"
    yield f"Pool: {pool['file'] or f'this machine ({lacking})'}"
    if len(pool["hosts"]) > 1:
        yield f"Network across hosts: {pool['network']}"
    shared = "" if pool["shared_output"] else " (not shared: all jobs of an experiment run on one host)"
    yield f"Output: {pool['output']}{shared}"
    yield f"Data: {pool['data']}"


def list_host_warnings(hosts: Sequence[wire.HostView]) -> list[str]:
    """Return why hosts do not answer."""
    return [f"{host['name']}: {host['message']}" for host in hosts if host["message"]]


def list_file_warnings(pool: wire.PoolView) -> list[str]:
    """Return why pool.yml is not in use, and which hosts with jobs it does not name any more."""
    warnings = [f"pool.yml has changed and is not in use: {pool['trouble']}"] if pool["trouble"] else []
    for removed_host in pool.get("gone", ()):  # a server of an earlier version does not say
        jobs = ", ".join(removed_host["jobs"])
        warnings.append(
            f"host {removed_host['host']} is not in pool.yml any more, and these jobs run there: {jobs}. They count as"
            f" lost in {format_seconds(removed_host['seconds_left'])}, unless the host is back in the file by then"
        )
    return warnings


def _format_state(host: wire.HostView) -> str:
    """Return the state of a host; a silent host may be drained too."""
    return "silent, drained" if host["state"] == "silent" and host["drained"] else host["state"]


def _format_uses(host: wire.HostView) -> list[str]:
    """Return CPUs, memory and GPUs of a host as used/total; `-` for a host that has never answered."""
    if not host["mem_mib"]:
        return [_UNKNOWN, _UNKNOWN, _UNKNOWN]
    return _format_amounts(host)


def _format_amounts(amounts: Mapping[str, Any]) -> list[str]:
    """Return CPUs, memory and GPUs of one or more hosts as used/total."""
    memory = f"{amounts['mem_mib_used'] / 1024:.1f}/{amounts['mem_mib'] / 1024:.1f} GiB"
    return [
        f"{amounts['cpus_used']:g}/{amounts['cpus']:g}",
        memory,
        f"{amounts['gpus_used']}/{amounts['gpus']}",
    ]


def list_leftovers(leftovers: wire.LeftoversView, style: Style) -> list[str]:
    """Return a table of what no experiment owns."""
    rows = [
        [
            leftover["kind"],
            leftover["name"],
            leftover["host"] or "(server)",
            _format_leftover_size(leftover),
            leftover["why"],
        ]
        for leftover in leftovers["leftovers"]
    ]
    return build_table(_LEFTOVERS, rows, style) if rows else []


def summarise_leftovers(leftovers: wire.LeftoversView, *, removed: bool) -> list[str]:
    """Return how much was found or removed, and what other servers left."""
    rows = leftovers["leftovers"]
    listed = [row for row in rows if row["removed"]] if removed else rows
    size = format_size(sum(row["size"] or 0 for row in listed))
    if not rows:
        first = "Nothing is left over."
    elif removed:
        first = f"Removed {count_noun(len(listed), 'thing')}, {size}."
    else:
        first = f"{count_noun(len(rows), 'thing')}, {size}. Nothing was removed: add --yes to remove it."
    foreign = (
        f"Server {server[:8]} has {count_noun(count, 'thing')} on these hosts. If its home is gone for good,"
        f" --foreign {server[:8]} takes them too."
        for server, count in sorted(leftovers["others"].items())
    )
    return [first, *foreign, *(_describe_disk(disk) for disk in leftovers["disks"])]


def _describe_disk(disk: wire.DiskView) -> str:
    """Return how full a disk is, and what the server did about it."""
    text = f"The disk of {' and '.join(disk['places'])} is {disk['percent']} % full"
    if disk["stuck"]:
        text += f": above {disk['clean_above']} %, and nothing is left on it that no experiment needs"
    if disk["removed_at"] is not None:
        removed = count_noun(disk["removed"], "unused thing")
        text += f"; the server has removed {removed} by itself, the last at {disk['removed_at']}"
    return f"{text}."


def _format_leftover_size(leftover: wire.LeftoverView) -> str:
    return "-" if leftover["size"] is None else format_size(leftover["size"])


def list_self_findings(findings: Sequence[wire.SelfFinding], style: Style) -> list[str]:
    """Return a table of what `riseml self check` examined: what is so, and what to do."""
    rows = [[finding["topic"], finding["outcome"], finding["message"]] for finding in findings]
    return build_table(_SELF_FINDINGS, rows, style)


def list_schema_files(files: Sequence[wire.SchemaFile], style: Style) -> list[str]:
    """Return a table of the schemas for editors."""
    return build_table(_SCHEMA_FILES, [[file["file"], file["schema"]] for file in files], style)
