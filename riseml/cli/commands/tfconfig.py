"""`tfconfig`: what each job reads as TF_CONFIG, of an experiment or of a file that has not run yet."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from riseml.cli.commands.files import FileOption, JsonOption, check_source, read_source
from riseml.cli.commands.train import ParameterOption, SettingOption
from riseml.cli.output.lines import count_problems
from riseml.cli.tools import Exit, Tools, choose, read_pairs
from riseml.errors import NotFound, UsageError

if TYPE_CHECKING:
    from riseml import wire

Configs = Mapping[str, dict[str, Any] | None]

_ALONE = "a job alone gets none, and so does one that is no part of the cluster"


def tfconfig(  # noqa: PLR0913  # the command has so many options
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
    """Print the TF_CONFIG of each job, or of one job alone.

    `riseml tfconfig 4`, `riseml tfconfig 4.worker.1`, `riseml tfconfig -f riseml.yml worker.1`. That of one job is one
    line where it is piped: `export TF_CONFIG="$(riseml tfconfig 4.worker.1)"`.
    """
    tools: Tools = context.obj
    words = list(names or [])
    if file is None:
        if parameters or settings:
            raise UsageError("-p and --set change a file, not an experiment", "add `-f riseml.yml`")
        found, prefix, job = _of_experiment(tools, words)
    else:
        pairs = read_pairs(parameters or [], "-p"), read_pairs(settings or [], "--set")
        found, prefix, job = _of_file(tools, file, pairs), "", _only(words)
    _print(tools, _pick(found, job), prefix, alone=job in found, json_wanted=json)


def _of_experiment(tools: Tools, words: list[str]) -> tuple[Configs, str, str | None]:
    """The configurations, the prefix of their jobs' IDs, and the job or role that is meant."""
    from riseml.names import parse_id

    with tools.connect() as client:
        wanted = parse_id(choose(tools, client, words[0] if words else None))
        job = _only(words[1:]) or wanted.job
        whole = str(wanted).removesuffix(f".{wanted.job}")
        answer = client.tf_configs(f"{whole}.{job}" if job else whole)
    return answer["configs"], f"{whole}.", job


def _of_file(tools: Tools, file: Any, pairs: tuple[list[tuple[str, str]], list[tuple[str, str]]]) -> Configs:
    """Through the dry run, so that a file and its experiment can never differ."""
    from riseml.spec.config.loader import Overrides

    source = read_source(tools, file)
    spec, problems = check_source(source, Overrides(*map(tuple, pairs)))
    if spec is None:
        tools.render.problems(problems, source.name, source.text)
        tools.render.say(f"{source.name} has {count_problems(problems)}.")
        raise Exit(UsageError.exit_code)
    submission: wire.Submission = {
        "project": spec.project,
        "file": source.name,
        "config": source.text,
        "parameters": pairs[0],
        "settings": pairs[1],
    }
    with tools.connect() as client:
        jobs = client.plan(submission)["experiments"][0]["jobs"]
    texts = {job["name"]: job["environment"].get("TF_CONFIG") for job in jobs}
    return {name: None if text is None else json.loads(text) for name, text in texts.items()}


def _only(words: list[str]) -> str | None:
    if len(words) > 1:
        raise UsageError(f"{words[1]!r} is one word too many", "give an ID and a job, or with -f a job alone")
    return words[0] if words else None


def _pick(configs: Configs, job: str | None) -> Configs:
    found = {name: one for name, one in configs.items() if job is None or name == job or name.startswith(f"{job}.")}
    if not found:
        raise NotFound(f"there is no job {job}", f"its jobs are {', '.join(configs)}")
    return found


def _print(tools: Tools, configs: Configs, prefix: str, *, alone: bool, json_wanted: bool) -> None:
    if json_wanted:
        tools.render.json(configs)
    elif alone:
        ((name, config),) = configs.items()
        if config is None:
            raise NotFound(f"{prefix}{name} gets no TF_CONFIG", _ALONE)
        tools.render.print(*(_pretty(config) if tools.render.live else [json.dumps(config, separators=(",", ":"))]))
    else:
        for at, (name, config) in enumerate(configs.items()):
            shown = ["none: " + _ALONE] if config is None else _pretty(config)
            tools.render.print(*([""] if at else []), f"{prefix}{name}", *shown)


def _pretty(config: object) -> list[str]:
    return json.dumps(config, indent=2).splitlines()
