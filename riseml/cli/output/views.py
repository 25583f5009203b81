"""What the server answers as tables and fields. Nothing here asks anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from riseml.cli.output.lines import last_lines, paint_state
from riseml.cli.output.text import (
    Column,
    clean,
    fields,
    plural,
    show_age,
    show_gib,
    show_number,
    show_parameters,
)
from riseml.names import LOCAL_HOST, THIS_MACHINE
from riseml.project.messages import format_size

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.output.printer import Render

_LIST = (Column("ID"), Column("PROJECT", shrinks=True), Column("STATE"), Column("AGE"), Column("TYPE", shrinks=True))
_LIST_LONG = (*_LIST, Column("JOBS"), Column("REASON"), Column("PARAMS", shrinks=True))
_JOBS = (
    Column("ID"),
    Column("STATE"),
    Column("HOST", shrinks=True),
    Column("ATTEMPT", right=True),
    Column("EXIT", right=True),
    Column("REASON"),
    Column("AGE"),
)
_RESOURCES = (
    Column("ID"),
    Column("CPUS", right=True),
    Column("MEM", right=True),
    Column("GPUS", right=True),
    Column("MESSAGE", shrinks=True),
)
_MEMBERS = (Column("EXP ID"), Column("STATE"), Column("AGE"), Column("PARAMS", shrinks=True))
_SAMPLES = (
    Column("ID"),
    Column("PROJECT", shrinks=True),
    Column("STATE"),
    Column("CPU %", right=True),
    Column("MEM %", right=True),
    Column("MEM-Used / Total", right=True),
    Column("GPU %", right=True),
    Column("GPU-MEM %", right=True),
    Column("GPU-MEM Used/Total", right=True),
)
_GPUS = (
    Column("ID"),
    Column("STATE"),
    Column("GPU %", right=True),
    Column("GPU-MEM %", right=True),
    Column("GPU-MEM Used/Total", right=True),
)
_HOST = Column("HOST", shrinks=True)
_HOSTS = (
    Column("HOST", shrinks=True),
    Column("STATE"),
    Column("CPUS Used/Total", right=True),
    Column("MEM Used/Total", right=True),
    Column("GPUS Used/Total", right=True),
)
_LEFTOVERS = (
    Column("KIND"),
    Column("NAME", shrinks=True),
    Column("HOST"),
    Column("SIZE", right=True),
    Column("WHY", shrinks=True),
)
_HOSTS_LONG = (*_HOSTS, Column("ENGINE"))


def list_lines(
    render: Render, experiments: Sequence[wire.ExperimentView], now: datetime, *, long: bool = False
) -> list[str]:
    """A table of experiments; `long` shows the members of sets, and more of each."""
    rows: list[list[str]] = []
    for one in _with_members(experiments) if long else experiments:
        row = [one["id"], one["project"], one["state"], show_age(one["created_at"], now), one["type"].capitalize()]
        if long:
            running = sum(job["state"] == "RUNNING" for job in one["jobs"])
            row += [f"{running}/{len(one['jobs'])}", one["reason"], show_parameters(one["parameters"])]
        rows.append(row)
    return render.table_lines(_LIST_LONG if long else _LIST, rows)


def _with_members(experiments: Sequence[wire.ExperimentView]) -> Iterator[wire.ExperimentView]:
    for one in experiments:
        yield one
        yield from one["experiments"]


def experiment_lines(render: Render, one: wire.ExperimentView, now: datetime, *, long: bool = False) -> list[str]:
    """Everything about one experiment or set."""
    ended = one["state"] in ("FAILED", "KILLED", "FINISHED")
    heads = fields(
        [
            ("ID", one["id"]),
            ("Type", one["type"].capitalize()),
            ("State", one["state"]),
            ("Reason", _reason(one) if one["reason"] != one["state"] else None),
            ("Cause", f"{one['id']}.{one['cause']}" if one["cause"] else None),
            ("Exit Code", one["exit_code"]),
            ("Project", one["project"]),
            ("Age", show_age(one["created_at"], now)),
            ("Ended", f"{show_age(one['ended_at'], now)} ago" if one["ended_at"] else None),
            ("Image", one["image"]),
            ("Framework", one["framework"]),
            ("Output", one["output"]),
            ("Parameters", show_parameters(one["parameters"])),
            ("Cleaning up", "jobs are still being stopped" if ended and not one["closed"] else None),
        ]
    )
    heads = [clean(line) for line in heads]
    heads[2] = f"State: {paint_state(one['state'], one['state'], colour=render.colour)}"
    if one["type"] == "set":
        rows = [_member(member, now) for member in one["experiments"]]
        return [*heads, "", *render.table_lines(_MEMBERS, rows)]
    if not one["jobs"]:
        return [*heads, "", "No jobs yet."]
    shown = [*heads, "", *render.table_lines(_JOBS, [_job(job, now) for job in one["jobs"]])]
    if long:
        shown += ["", *render.table_lines(_RESOURCES, [_resources(job) for job in one["jobs"]])]
    else:
        shown += _messages(one)
    said = last_lines(one)
    return [*shown, "", *said] if said else shown


def _reason(one: wire.ExperimentView) -> str:
    message = (one["message"].splitlines() or [""])[0]
    says_more = message and message.upper() != one["reason"].replace("_", " ")
    return f"{one['reason']} ({message})" if says_more else one["reason"]


def _member(one: wire.ExperimentView, now: datetime) -> list[str]:
    return [one["id"], one["state"], show_age(one["created_at"], now), show_parameters(one["parameters"])]


def _job(job: wire.JobView, now: datetime) -> list[str]:
    ended = job["signal"] or ("-" if job["exit_code"] is None else str(job["exit_code"]))
    age = show_age(job["started_at"], now)
    return [job["id"], job["state"], job["host"] or "-", str(job["attempt"]), ended, job["reason"], age]


def _resources(job: wire.JobView) -> list[str]:
    message = job["message"].splitlines() or [""]
    return [job["id"], f"{job['cpus']:g}", f"{job['mem_mib']} MiB", str(job["gpus"]), message[0]]


def _messages(one: wire.ExperimentView) -> list[str]:
    """What failed jobs have to say, beside the exit code that their row has."""
    told = [
        job
        for job in one["jobs"]
        if job["state"] == "FAILED" and job["message"] not in ("", f"exit code {job['exit_code']}")
    ]
    return ["", *(clean(f"{job['id']}: {job['message'].splitlines()[0]}") for job in told)] if told else []


def sample_lines(render: Render, samples: Sequence[wire.SampleView], *, gpus: bool = False) -> list[str]:
    """The monitor's table; `gpus` shows what there is to say about them alone."""
    rows = []
    several = any(one["host"] not in (None, LOCAL_HOST, THIS_MACHINE) for one in samples)
    for one in samples:
        place = [one["host"] or "-"] if several else []
        gpu = [show_number(one["gpu"]), show_number(one["gpu_mem"]), _of(one["gpu_mem_used"], one["gpu_mem_total"])]
        if gpus:
            rows.append([one["id"], one["state"], *place, *gpu])
        else:
            memory = [show_number(one["cpu"]), show_number(one["mem"]), _of(one["mem_used"], one["mem_total"], " / ")]
            rows.append([one["id"], one["project"], one["state"], *place, *memory, *gpu])
    columns = _GPUS if gpus else _SAMPLES
    at = next(index for index, column in enumerate(columns) if column.title == "STATE") + 1
    return render.table_lines((*columns[:at], _HOST, *columns[at:]) if several else columns, rows)


def _of(used: int | None, total: int | None, between: str = "/") -> str:
    return "N/A" if used is None and total is None else f"{show_gib(used)}{between}{show_gib(total)}"


def print_experiment(render: Render, one: wire.ExperimentView, now: datetime, *, long: bool = False) -> None:
    """Print `experiment_lines` and its notes."""
    render.print(*experiment_lines(render, one, now, long=long))


def print_system(render: Render, system: wire.SystemView, *, long: bool = False) -> None:
    """The hosts; `long` adds the server and the engines."""
    if long:
        render.print(*server_lines(system["server"]), "")
    rows = []
    for host in system["hosts"]:
        row = [host["name"], show_host_state(host), *show_uses(host)]
        rows.append([*row, host["engine"] or "-"] if long else row)
    render.table(_HOSTS_LONG if long else _HOSTS, rows)
    warn_of_hosts(render, system["hosts"])


def show_host_state(host: wire.HostView) -> str:
    """The state of a host; that it is drained is told of a silent one, too."""
    return "silent, drained" if host["state"] == "silent" and host["drained"] else host["state"]


def show_uses(host: wire.HostView) -> list[str]:
    """CPUs, memory and GPUs of a host, used and in all; `-` when it has never answered."""
    if not host["mem_mib"]:
        return ["-", "-", "-"]
    memory = f"{host['mem_mib_used'] / 1024:.1f}/{host['mem_mib'] / 1024:.1f} GiB"
    return [f"{host['cpus_used']:g}/{host['cpus']:g}", memory, f"{host['gpus_used']}/{host['gpus']}"]


def warn_of_hosts(render: Render, hosts: Sequence[wire.HostView]) -> None:
    """Why some do not answer."""
    for host in hosts:
        if host["message"]:
            render.warn(f"{host['name']}: {host['message']}")


def print_leftovers(render: Render, found: wire.LeftoversView, *, removed: bool) -> None:
    """What no experiment owns, and what became of it."""
    rows = found["leftovers"]
    if rows:
        render.table(_LEFTOVERS, [_leftover(one) for one in rows])
    gone = [one for one in rows if one["removed"]] if removed else rows
    size = format_size(sum(one["size"] or 0 for one in gone))
    if not rows:
        render.say("Nothing is left over.")
    elif removed:
        render.say(f"Removed {plural(len(gone), 'thing')}, {size}.")
    else:
        render.say(f"{plural(len(rows), 'thing')}, {size}. Nothing was removed: add --yes to do it.")
    for host in found["silent"]:
        render.warn(f"host {host} does not answer, and was not looked through")
    for server, count in sorted(found["others"].items()):
        render.say(
            f"Server {server[:8]} has {plural(count, 'thing')} on these hosts. If its home is gone for good,"
            f" --foreign {server[:8]} takes them too."
        )


def _leftover(one: wire.LeftoverView) -> list[str]:
    size = "-" if one["size"] is None else format_size(one["size"])
    return [one["kind"], one["name"], one["host"] or "(server)", size, one["why"]]


def server_lines(server: wire.ServerView) -> list[str]:
    """Who serves."""
    return fields(
        [
            ("Server", f"riseml {server['version']}, process {server['pid']}, since {server['started_at']}"),
            ("Home", server["home"]),
            (
                "Executor",
                f"docker ({server['engine'] or 'the hosts of pool.yml'})"
                if server["executor"] == "docker"
                else server["executor"],
            ),
            ("Note", server["note"]),
            ("Active experiments", str(server["active"])),
        ]
    )
