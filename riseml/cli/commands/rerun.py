"""`rerun`: run an experiment again, with its original code, environment and data."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.cli.arguments import parse_pairs
from riseml.cli.commands.options import JsonOption, MessageOption, ParameterOption, SettingOption
from riseml.cli.commands.train import (
    AllowOption,
    ExecutorOption,
    describe_start,
    follow_to_end,
    read_message,
    submit_experiment,
)
from riseml.cli.context import CommandContext, Exit
from riseml.submission.rerunning import RerunRequest, begin_run

if TYPE_CHECKING:
    from riseml.submission.rerunning import Rerun


def rerun_experiment(  # noqa: PLR0913  # one parameter for each option of the command
    context: typer.Context,
    source: Annotated[
        str, typer.Argument(metavar="ID|CAPSULE", help="An experiment or set, or the .riseml of an output.")
    ],
    *,
    detach: Annotated[bool, typer.Option("-d", "--detach", help="Start it and return at once.")] = False,
    json: JsonOption = False,
    parameters: ParameterOption = None,
    settings: SettingOption = None,
    message: MessageOption = None,
    force: Annotated[
        bool, typer.Option("--force", help="Run with the image of now, and without data that is gone.")
    ] = False,
    executor: ExecutorOption = None,
    allow_env: AllowOption = None,
) -> None:
    """Run an experiment again: the same code, environment and data.

    `riseml rerun 4`, `riseml rerun 4 -p lr=0.1`, `riseml rerun ./output/.riseml` on any server. If a part of the run is
    no longer available, the command names it and starts nothing (exit code 4).
    """
    command: CommandContext = replace(context.obj, asks=context.obj.asks and not json)
    if executor is not None:
        command = replace(command, environ={**command.environ, "RISEML_EXECUTOR": executor.value})
    pairs = parse_pairs(parameters or [], "-p"), parse_pairs(settings or [], "--set")
    note = None if message is None else read_message(message)
    with closing(_begin_run(command, source, RerunRequest(*pairs, allow_env or [], force, note))) as begun:
        if json:
            command.printer.print_json(begun.experiment)
        if not detach:
            follow_to_end(command, begun.client, begun.experiment, json=json, long=False)
    if not json:
        command.printer.print_lines([describe_start(begun.experiment)])


def _begin_run(command: CommandContext, source: str, request: RerunRequest) -> Rerun:
    """Submit the run that the user has named.

    Raises:
        Exit: its riseml.yml has errors, which are printed; or the user pressed Ctrl-C.
    """
    from riseml.spec.yaml.problems import SpecError, count_problems

    try:
        return begin_run(command, source, request, partial(submit_experiment, command))
    except SpecError as error:
        if command.json_errors:
            raise
        command.printer.say(f"The riseml.yml of that run has {count_problems(error.problems)}. Nothing was started.")
        raise Exit(error.exit_code) from None
