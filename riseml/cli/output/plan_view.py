"""A plan as lines: one table of jobs, then commands and environments, with what all jobs share shown once. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from riseml.cli.output.style import Style
from riseml.cli.output.tables import Column, build_table
from riseml.cli.output.text import count_noun, describe_goals, format_fields, format_parameters

if TYPE_CHECKING:
    from riseml import wire

_MOST_MEMBERS = 30  # the most experiments of a set that are listed

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
_COMMANDS = (Column("JOB"), Column("COMMAND"))
_VARIABLES = (Column("JOB"), Column("ENVIRONMENT"))
_MEMBERS = (Column("EXP ID"), Column("PARAMS", shrinks=True))
_MEMBERS_WITH_JOBS = (
    Column("EXP ID"),
    Column("JOBS", shrinks=True),
    Column("CPUS", right=True),
    Column("MEM", right=True),
    Column("GPUS", right=True),
    Column("PARAMS", shrinks=True),
)


def list_plan(plan: wire.PlanView, style: Style) -> list[str]:
    """Return the plan of `train`: the first experiment in full, the parameters of the others."""
    first = plan["experiments"][0]
    jobs = first["jobs"]
    limited = any(_format_limits(job) for job in jobs)
    return [
        *_list_heads(plan, first),
        "",
        *build_table(_JOBS_LIMITED if limited else _JOBS, [_make_job_row(job, limited=limited) for job in jobs], style),
        "",
        *build_table(_COMMANDS, list(_make_command_rows(jobs)), style),
        "",
        *build_table(_VARIABLES, list(_make_variable_rows(jobs)), style),
        *_list_members(plan["experiments"], style),
    ]


def _list_heads(plan: wire.PlanView, first: wire.PlanExperiment) -> list[str]:
    search = plan.get("search")  # a server of an earlier version does not say it
    return format_fields(
        [
            ("Project", plan["project"]),
            ("Framework", plan["framework"]),
            ("Image", _describe_image(plan)),
            ("Base", plan["base"] if plan["base"] != plan["image"] and not plan["replaced_by"] else None),
            *(("Install", step) for step in plan["install"]),
            *(field for environment in plan["role_environments"] for field in _list_role_fields(environment)),
            *(("Data", _describe_data(data)) for data in plan.get("data", [])),  # an earlier server sends none
            ("Saves", _describe_save(plan.get("save"))),
            ("Search", _describe_search(search) if search else None),
            ("Experiment", f"{first['id']}, {'the first trial, ' if search else ''}if it were submitted now"),
            ("Parameters", format_parameters(first["parameters"])),
            ("Output", first["output"]),
            ("Starts", _describe_start(plan, first)),
        ]
    )


def _describe_data(data: wire.PlanData) -> str:
    refused = f": never: {data['refused']}" if data["refused"] else ""
    return f"{data['url']} as {data['folder']}{refused}"


def _describe_save(save: wire.PlanSave | None) -> str | None:
    """Return where the output is saved; None for a plan that saves nothing, or a server of an earlier version."""
    if save is None:
        return None
    return f"{save['url']}: never: {save['refused']}" if save["refused"] else f"the output in {save['url']}"


def _describe_search(search: wire.PlanSearch) -> str:
    """Return `tpe, 40 trials, 4 at the same time, maximize accuracy, stopped early by asha`."""
    stop = f", stopped early by {search['stop']}" if search["stop"] else ""
    seeds = f" with {search['repeat']} seeds each" if search["repeat"] > 1 else ""
    count = f"{count_noun(search['trials'], 'trial')}{seeds}, {search['concurrency']} at the same time"
    return f"{search['method']}, {count}, {describe_goals(search)}{stop}"


def _list_role_fields(environment: wire.PlanRoleEnvironment) -> list[tuple[str, str | None]]:
    """Return the environment of one role, in the form of the common one."""
    base = (
        environment["base"] if environment["base"] != environment["image"] and not environment["replaced_by"] else None
    )
    role = environment["role"]
    steps = [(f"Install of {role}", step) for step in environment["install"]]
    return [(f"Image of {role}", _describe_image(environment)), (f"Base of {role}", base), *steps]


def _describe_start(plan: wire.PlanView, first: wire.PlanExperiment) -> str:
    every: list[wire.PlanEnvironment] = [plan, *plan["role_environments"]]
    refused = next((environment["refused"] for environment in every if environment["refused"]), None)
    refused = refused or next((data["refused"] for data in plan.get("data", []) if data["refused"]), None)
    save = plan.get("save")
    refused = refused or (save["refused"] if save else None)
    if refused:
        return f"never: {refused}"
    return (
        f"not at once: {first['waits']}"
        if first["waits"]
        else "at once" + _wait_for_images(every) + _wait_for_data(plan)
    )


def _describe_image(plan: wire.PlanEnvironment) -> str:
    if plan["replaced_by"]:
        state = {True: " (cached)", False: " (will be made)", None: ""}[plan["cached"]]
        return f"{plan['base']}, replaced by {plan['replaced_by']}{state}"
    if plan["cached"] is not None:
        missing = "will be built" if plan["install"] else "will be fetched"
        return f"{plan['image']} ({'cached' if plan['cached'] else missing})"
    if plan["image"] == plan["base"] and plan["install"]:
        steps = count_noun(len(plan["install"]), "install step")
        return f"{plan['image']} with {steps} (riseml knows whether it is cached once the project was synced)"
    return f"{plan['image']} (no host answered whether it has it)"


def _wait_for_data(plan: wire.PlanView) -> str:
    return ", once the data is there" if plan.get("data") else ""


def _wait_for_images(every: Sequence[wire.PlanEnvironment]) -> str:
    missing = [environment for environment in every if not environment["cached"]]
    if not missing:
        return ""
    if len(every) > 1:
        return ", once the environments are there"
    return ", once the environment is made" if missing[0]["replaced_by"] else ", once the image is there"


def _make_job_row(job: wire.PlanJob, *, limited: bool) -> list[str]:
    amounts = [f"{job['cpus']:g}", f"{job['mem_mib']} MiB", _format_gpus(job), f"{job['shm_mib']} MiB"]
    row = [job["name"], job["part"].lower(), job["host"] or "-", *amounts]
    return [*row, _format_limits(job) or "-"] if limited else row


def _format_gpus(job: wire.PlanJob) -> str:
    """Return `2 a100, 40960 MiB`."""
    memory = "" if job["gpu_mem_mib"] is None else f", {job['gpu_mem_mib']} MiB"
    return f"{job['gpus']} {job['gpu']}".rstrip() + memory


def _format_limits(job: wire.PlanJob) -> str:
    cpus = job["limit_cpus"]
    mem = job["limit_mem_mib"]
    parts = [None if cpus is None else f"cpus {cpus:g}", None if mem is None else f"mem {mem} MiB"]
    return ", ".join(part for part in parts if part)


def _make_command_rows(jobs: Sequence[wire.PlanJob]) -> Iterator[list[str]]:
    """Yield the lines of each command once, with the jobs that run it."""
    runners: dict[tuple[str, ...], list[str]] = {}
    for job in jobs:
        runners.setdefault(tuple(job["run"]), []).append(job["name"])
    for lines, names in runners.items():
        rows = [part for line in lines for part in line.splitlines() or [""]]
        yield from _label_rows(_join_job_names(names, len(jobs)), rows)


def _make_variable_rows(jobs: Sequence[wire.PlanJob]) -> Iterator[list[str]]:
    """Yield the variables that all jobs share, then those of each job."""
    every = [_collect_variables(job) for job in jobs]
    common = dict(set(every[0].items()).intersection(*(job_variables.items() for job_variables in every)))
    yield from _label_rows(_join_job_names([job["name"] for job in jobs], len(jobs)), _format_assignments(common))
    for job, variables in zip(jobs, every, strict=True):
        own = {name: value for name, value in variables.items() if common.get(name) != value}
        yield from _label_rows(job["name"], _format_assignments(own))


def _collect_variables(job: wire.PlanJob) -> dict[str, str]:
    return {**job["environment"], **dict.fromkeys(job["passed_on"], "(yours, not shown)")}


def _format_assignments(variables: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in sorted(variables.items())]


def _label_rows(label: str, lines: Sequence[str]) -> Iterator[list[str]]:
    for index, line in enumerate(lines):
        yield [label if index == 0 else "", line]


def _join_job_names(names: Sequence[str], total: int) -> str:
    if len(names) == total > 1:
        return "all"
    return ", ".join(names if len(names) <= 4 else [*names[:2], "...", names[-1]])


def _list_members(experiments: Sequence[wire.PlanExperiment], style: Style) -> list[str]:
    """Return a table of the other experiments; of all of them, with their jobs, when the parameters change the jobs."""
    differ = len({tuple(_describe_need(job) for job in experiment["jobs"]) for experiment in experiments}) > 1
    listed = experiments if differ else experiments[1:]
    if not listed:
        return []
    rows = [
        [
            experiment["id"],
            *(_sum_jobs(experiment["jobs"]) if differ else ()),
            format_parameters(experiment["parameters"]),
        ]
        for experiment in listed[:_MOST_MEMBERS]
    ]
    more = len(listed) - _MOST_MEMBERS
    return [
        "",
        *build_table(_MEMBERS_WITH_JOBS if differ else _MEMBERS, rows, style),
        *([f"... and {more} more; `--json` has them all"] if more > 0 else []),
    ]


def _describe_need(job: wire.PlanJob) -> tuple[str, float, int, str]:
    return job["name"], job["cpus"], job["mem_mib"], _format_gpus(job)


def _sum_jobs(jobs: Sequence[wire.PlanJob]) -> list[str]:
    """Return the names of the jobs, and what all of them need together."""
    names = [job["name"] for job in jobs]
    return [
        f"{len(names)}: {_join_job_names(names, 0)}",
        f"{sum(job['cpus'] for job in jobs):g}",
        f"{sum(job['mem_mib'] for job in jobs)} MiB",
        f"{sum(job['gpus'] for job in jobs)}",
    ]
