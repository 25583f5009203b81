"""A plan for people: one table of jobs, then what they run and find in their environment, what is common said once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from riseml.cli.output.text import Column, clean, fields, plural, show_parameters

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.output.printer import Render

_MOST_POINTS = 30

_JOBS = (
    Column("JOB"),
    Column("PART"),
    Column("HOST", shrinks=True),
    Column("CPUS", right=True),
    Column("MEM", right=True),
    Column("GPUS", right=True),
    Column("SHM", right=True),
)
_JOBS_LIMITED = (*_JOBS, Column("LIMITS"))
_RUN = (Column("JOB"), Column("COMMAND"))
_VARIABLES = (Column("JOB"), Column("ENVIRONMENT"))
_POINTS = (Column("EXP ID"), Column("PARAMS", shrinks=True))


def print_plan(render: Render, plan: wire.PlanView) -> None:
    """What `train` would do: the first experiment in full, the parameters of the others."""
    first, *others = plan["experiments"]
    jobs = first["jobs"]
    heads = [
        ("Project", plan["project"]),
        ("Framework", plan["framework"]),
        ("Image", _image(plan)),
        ("Base", plan["base"] if plan["base"] != plan["image"] else None),
        *(("Install", step) for step in plan["install"]),
        ("Experiment", f"{first['id']}, if it were submitted now"),
        ("Parameters", show_parameters(first["parameters"])),
        ("Output", first["output"]),
        ("Starts", f"not at once: {first['waits']}" if first["waits"] else "at once" + _behind_image(plan)),
    ]
    render.print(*(clean(line) for line in fields(heads)), "")
    limited = any(_limits(job) for job in jobs)
    render.table(_JOBS_LIMITED if limited else _JOBS, [_job(job, limited=limited) for job in jobs])
    render.print("")
    render.table(_RUN, list(_commands(jobs)))
    render.print("")
    render.table(_VARIABLES, list(_environment(jobs)))
    if others:
        _print_points(render, others)
    render.say(f"{plural(len(plan['experiments']), 'experiment')}; nothing was started.")


def _image(plan: wire.PlanView) -> str:
    if plan["cached"] is not None:
        missing = "will be built" if plan["install"] else "will be fetched"
        return f"{plan['image']} ({'cached' if plan['cached'] else missing})"
    if plan["image"] == plan["base"] and plan["install"]:
        steps = plural(len(plan["install"]), "install step")
        return f"{plan['image']} with {steps} (whether it is cached is known once the project was synced)"
    return f"{plan['image']} (no host could be asked for it)"


def _behind_image(plan: wire.PlanView) -> str:
    return "" if plan["cached"] else ", once the image is there"


def _job(job: wire.PlanJob, *, limited: bool) -> list[str]:
    amounts = [f"{job['cpus']:g}", f"{job['mem_mib']} MiB", str(job["gpus"]), f"{job['shm_mib']} MiB"]
    row = [job["name"], job["part"].lower(), job["host"] or "-", *amounts]
    return [*row, _limits(job) or "-"] if limited else row


def _limits(job: wire.PlanJob) -> str:
    cpus, mem = job["limit_cpus"], job["limit_mem_mib"]
    shown = [None if cpus is None else f"cpus {cpus:g}", None if mem is None else f"mem {mem} MiB"]
    return ", ".join(part for part in shown if part)


def _commands(jobs: Sequence[wire.PlanJob]) -> Iterator[list[str]]:
    """The lines of each command once, with the jobs that run it."""
    runners: dict[tuple[str, ...], list[str]] = {}
    for job in jobs:
        runners.setdefault(tuple(job["run"]), []).append(job["name"])
    for lines, names in runners.items():
        shown = [part for line in lines for part in line.splitlines() or [""]]
        yield from _labelled(_name(names, len(jobs)), shown)


def _environment(jobs: Sequence[wire.PlanJob]) -> Iterator[list[str]]:
    """The variables that all jobs share, then those of each job."""
    every = [_variables(job) for job in jobs]
    common = dict(set(every[0].items()).intersection(*(one.items() for one in every)))
    yield from _labelled(_name([job["name"] for job in jobs], len(jobs)), _assignments(common))
    for job, variables in zip(jobs, every, strict=True):
        own = {name: value for name, value in variables.items() if common.get(name) != value}
        yield from _labelled(job["name"], _assignments(own))


def _variables(job: wire.PlanJob) -> dict[str, str]:
    return {**job["environment"], **dict.fromkeys(job["passed_on"], "(yours, not shown)")}


def _assignments(variables: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in sorted(variables.items())]


def _labelled(label: str, lines: Sequence[str]) -> Iterator[list[str]]:
    for index, line in enumerate(lines):
        yield [label if index == 0 else "", line]


def _name(names: Sequence[str], total: int) -> str:
    if len(names) == total > 1:
        return "all"
    return ", ".join(names if len(names) <= 4 else [*names[:2], "...", names[-1]])


def _print_points(render: Render, others: Sequence[wire.PlanExperiment]) -> None:
    render.print("")
    render.table(_POINTS, [[one["id"], show_parameters(one["parameters"])] for one in others[:_MOST_POINTS]])
    if len(others) > _MOST_POINTS:
        render.print(f"... and {len(others) - _MOST_POINTS} more; `--json` has them all")
