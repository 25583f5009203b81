"""`tfconfig`: the TF_CONFIG of each job, of an experiment or of a file that has not run yet."""

from __future__ import annotations

from collections.abc import Mapping
from json import dumps, loads
from typing import Annotated

import typer

from riseml.base.errors import NotFound
from riseml.cli.commands.options import FileOption, JsonOption, ParameterOption, SettingOption
from riseml.cli.context import CommandContext
from riseml.cli.job_choice import JobOptions, PlannedFile, read_jobs, select_jobs
from riseml.cli.output.text import clean_text

Configs = Mapping[str, object]
"""The TF_CONFIG of each job by its name; None for a job without one."""

_NO_CONFIG = "a single job gets none, nor does a job outside a TensorFlow cluster; `riseml env` shows what it gets"


def print_tf_config(
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
    """Print the TF_CONFIG of each job, or of one job.

    `riseml tfconfig 4`, `riseml tfconfig 4.worker.1`, `riseml tfconfig -f riseml.yml worker.1`. In a pipe, the
    TF_CONFIG of one job is one line: `export TF_CONFIG="$(riseml tfconfig 4.worker.1)"`.
    """
    command: CommandContext = context.obj
    jobs = read_jobs(
        command,
        list(names or []),
        JobOptions(file, parameters, settings),
        lambda client, identity: client.get_tf_configs(identity)["configs"],
        _plan_configs,
    )
    selected = select_jobs(jobs.values, jobs.job)
    _print_configs(command, selected, jobs.prefix, single=jobs.job in jobs.values, as_json=json)


def _plan_configs(planned: PlannedFile) -> Configs:
    texts = {job["name"]: job["environment"].get("TF_CONFIG") for job in planned.jobs}
    return {name: None if text is None else loads(text) for name, text in texts.items()}


def _print_configs(command: CommandContext, configs: Configs, prefix: str, *, single: bool, as_json: bool) -> None:
    if as_json:
        command.printer.print_json(configs)
    elif single:
        ((name, config),) = configs.items()
        if config is None:
            raise NotFound(f"{prefix}{name} gets no TF_CONFIG", _NO_CONFIG)
        one_line = dumps(config, separators=(",", ":"))
        command.printer.print_lines(_indent_json(config) if command.printer.live else [one_line])
    else:
        for at, (name, config) in enumerate(configs.items()):
            lines = ["none: " + _NO_CONFIG] if config is None else _indent_json(config)
            command.printer.print_lines([*([""] if at else []), clean_text(f"{prefix}{name}"), *lines])


def _indent_json(config: object) -> list[str]:
    return dumps(config, indent=2).splitlines()
