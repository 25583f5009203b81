"""`tfconfig`: the TF_CONFIG of each job, of an experiment or of a file that has not run yet."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.cli.arguments import choose_experiment_id, parse_pairs
from riseml.cli.commands.options import FileOption, JsonOption, ParameterOption, SettingOption
from riseml.cli.config_source import check_config_source, read_config_source
from riseml.cli.context import CommandContext, Exit
from riseml.cli.output.problem_lines import count_problems
from riseml.cli.output.text import clean_text
from riseml.errors import NotFound, UsageError

if TYPE_CHECKING:
    from riseml import wire

Configs = Mapping[str, object]
"""The TF_CONFIG of each job by its name; None for a job without one."""

Pairs = list[tuple[str, str]]

_NO_CONFIG = "a single job gets none, nor does a job outside the TensorFlow cluster"


def print_tf_config(  # noqa: PLR0913  # one parameter for each option of the command
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
    words = list(names or [])
    if file is None:
        if parameters or settings:
            raise UsageError("-p and --set change a file, not an experiment", "add `-f riseml.yml`")
        found, prefix, job = _fetch_of_experiment(command, words)
    else:
        pairs = parse_pairs(parameters or [], "-p"), parse_pairs(settings or [], "--set")
        found, prefix, job = _fetch_of_file(command, file, pairs), "", _get_single_word(words)
    _print_configs(command, _select_jobs(found, job), prefix, single=job in found, as_json=json)


def _fetch_of_experiment(command: CommandContext, words: list[str]) -> tuple[Configs, str, str | None]:
    """Return the configurations, the prefix of their jobs' IDs, and the job or role that the user named."""
    from riseml.names import parse_id

    with command.connect() as client:
        wanted = parse_id(choose_experiment_id(command, client, words[0] if words else None))
        job = _get_single_word(words[1:]) or wanted.job
        whole = str(wanted).removesuffix(f".{wanted.job}")
        answer = client.get_tf_configs(f"{whole}.{job}" if job else whole)
    return answer["configs"], f"{whole}.", job


def _fetch_of_file(command: CommandContext, file: Path, pairs: tuple[Pairs, Pairs]) -> Configs:
    """Return the configurations that a dry run of the file gives, which are those that its experiment would get."""
    from riseml.spec.config.loader import Overrides

    source = read_config_source(command, file)
    spec, problems = check_config_source(source, Overrides(*map(tuple, pairs)))
    if spec is None:
        command.printer.print_problems(problems, source.name, source.text)
        command.printer.say(f"{source.name} has {count_problems(problems)}.")
        raise Exit(UsageError.exit_code)
    submission: wire.Submission = {
        "project": spec.project,
        "file": source.name,
        "config": source.text,
        "parameters": pairs[0],
        "settings": pairs[1],
    }
    with command.connect() as client:
        jobs = client.plan_submission(submission)["experiments"][0]["jobs"]
    texts = {job["name"]: job["environment"].get("TF_CONFIG") for job in jobs}
    return {name: None if text is None else json.loads(text) for name, text in texts.items()}


def _get_single_word(words: list[str]) -> str | None:
    if len(words) > 1:
        raise UsageError(f"{words[1]!r} is one word too many", "give an ID and a job, or with -f only a job")
    return words[0] if words else None


def _select_jobs(configs: Configs, job: str | None) -> Configs:
    found = {name: one for name, one in configs.items() if job is None or name == job or name.startswith(f"{job}.")}
    if not found:
        raise NotFound(f"there is no job {job}", f"the jobs are {', '.join(configs)}")
    return found


def _print_configs(command: CommandContext, configs: Configs, prefix: str, *, single: bool, as_json: bool) -> None:
    if as_json:
        command.printer.print_json(configs)
    elif single:
        ((name, config),) = configs.items()
        if config is None:
            raise NotFound(f"{prefix}{name} gets no TF_CONFIG", _NO_CONFIG)
        one_line = json.dumps(config, separators=(",", ":"))
        command.printer.print_lines(_indent_json(config) if command.printer.live else [one_line])
    else:
        for at, (name, config) in enumerate(configs.items()):
            shown = ["none: " + _NO_CONFIG] if config is None else _indent_json(config)
            command.printer.print_lines([*([""] if at else []), clean_text(f"{prefix}{name}"), *shown])


def _indent_json(config: object) -> list[str]:
    return json.dumps(config, indent=2).splitlines()
