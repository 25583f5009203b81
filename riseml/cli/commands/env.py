"""`env`: the variables that riseml sets in each job, of an experiment or of a file that has not run yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from riseml.cli.commands.options import FileOption, JsonOption, ParameterOption, SettingOption
from riseml.cli.context import CommandContext
from riseml.cli.job_choice import JobOptions, PlannedFile, read_jobs, select_jobs
from riseml.cli.output.text import clean_text

if TYPE_CHECKING:
    from riseml import wire


def print_environment(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID JOB", show_default=False, help="Default: the project's last experiment, all jobs."),
    ] = None,
    *,
    file: FileOption = None,
    json: JsonOption = False,
    parameters: ParameterOption = None,
    settings: SettingOption = None,
) -> None:
    """Print the variables that riseml sets in jobs, or in one job.

    `riseml env 4`, `riseml env 4.worker.1`, `riseml env -f riseml.yml worker.1`. Values that come from `env` in
    riseml.yml are never shown, nor those of variables whose names look secret, such as API_KEY. The image may set more.
    """
    command: CommandContext = context.obj
    jobs = read_jobs(
        command,
        list(names or []),
        JobOptions(file, parameters, settings),
        lambda client, identity: client.get_job_environments(identity)["jobs"],
        _plan_environments,
    )
    selected = select_jobs(jobs.values, jobs.job)
    if json:
        command.printer.print_json(selected)
        return
    several = len({environment["image"] for environment in jobs.values.values()}) > 1
    for at, (name, selected_environment) in enumerate(selected.items()):
        image = f" in {selected_environment['image']}" if several else ""
        heading = [] if jobs.job in jobs.values else [*([""] if at else []), clean_text(f"{jobs.prefix}{name}{image}")]
        command.printer.print_lines([*heading, *_list_lines(selected_environment)])


def _plan_environments(planned: PlannedFile) -> dict[str, wire.JobEnvironment]:
    """Return the variables that the jobs of a file would get, including values of `env` that the file contains."""
    from riseml.spec.scalars.secret_names import looks_secret

    written = {(variable.name, variable.value) for variable in planned.spec.train.env}
    environments: dict[str, wire.JobEnvironment] = {}
    for job in planned.jobs:
        hidden = [name for name, value in job["environment"].items() if (name, value) in written or looks_secret(name)]
        visible = {name: value for name, value in job["environment"].items() if name not in hidden}
        hidden += job["passed_on"]
        environments[job["name"]] = {"variables": visible, "hidden": hidden, "image": job["image"]}
    return environments


def _list_lines(environment: wire.JobEnvironment) -> list[str]:
    lines = [f"{name}={value}" for name, value in environment["variables"].items()]
    hidden = [f"{name}=*** (not shown)" for name in environment["hidden"]]
    return [clean_text(line) for line in sorted([*lines, *hidden])]
