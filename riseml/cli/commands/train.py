"""`train`: check riseml.yml, send the project's files, submit, follow the log."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from riseml.base.annotations import read_text
from riseml.base.errors import Interrupted, UsageError
from riseml.base.records import dataclass
from riseml.cli.arguments import parse_pairs
from riseml.cli.commands.more_trials import add_trials, check_trials
from riseml.cli.commands.options import (
    AfterOption,
    FileOption,
    JsonOption,
    LongLogOption,
    MessageOption,
    ParameterOption,
    SettingOption,
)
from riseml.cli.context import CommandContext, Exit
from riseml.cli.output.text import clean_text, count_noun
from riseml.submission.config_source import ConfigSource, read_config_source
from riseml.submission.predecessors import check_predecessors
from riseml.submission.submitting import (
    Pairs,
    confirm_environment,
    prepare_submission,
    send_with_revision,
    submit_once,
)

if TYPE_CHECKING:
    from riseml import wire
    from riseml.client.server_client import Client


class ExecutorChoice(Enum):
    """What runs jobs."""

    DOCKER = "docker"
    PROCESS = "process"
    SLURM = "slurm"


AllowOption = Annotated[
    list[str] | None,
    typer.Option("--allow-env", metavar="NAME", help="Allow riseml.yml to pass on your variable NAME; repeatable."),
]
ExecutorOption = Annotated[
    ExecutorChoice | None,
    typer.Option(help="Run jobs in Docker containers, or as you, with your files: as processes, or on Slurm."),
]

SetArgument = Annotated[
    str | None, typer.Argument(metavar="[ID]", show_default=False, help="A set that gets further trials: see --trials.")
]
TrialsOption = Annotated[
    int | None,
    typer.Option(
        "--trials", min=1, max=1000, metavar="N", show_default=False, help="Add N trials to the search of the set ID."
    ),
]


def train_project(  # noqa: PLR0913  # one parameter for each option of the command
    context: typer.Context,
    identity: SetArgument = None,
    *,
    trials: TrialsOption = None,
    file: FileOption = None,
    detach: Annotated[bool, typer.Option("-d", "--detach", help="Start it and return at once.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would run; start nothing.")] = False,
    json: JsonOption = False,
    parameters: ParameterOption = None,
    settings: SettingOption = None,
    message: MessageOption = None,
    after: AfterOption = None,
    long: LongLogOption = False,
    pull: Annotated[bool, typer.Option("--pull", help="Ask the registry for the newest image.")] = False,
    executor: ExecutorOption = None,
    allow_env: AllowOption = None,
) -> None:
    """Run the project: sync, build, start, and follow its log.

    With an ID and --trials the command adds trials to that set.

    The command asks once, on a terminal, before it sends variables of your environment (`env: [NAME]`), and before
    jobs run as processes because no engine answers. Elsewhere, and with --json, it refuses with exit code 4.

    With --after the run waits for other experiments, and fails when one of them does not finish.

    The exit code is 0 when it finished, 1 when it failed, 130 when it was killed. Ctrl-C leaves the log; it goes on.
    """
    command: CommandContext = replace(context.obj, asks=context.obj.asks and not json)  # --json asks no questions
    display = Shown(detach=detach, json=json, long=long)
    if identity is not None or trials is not None:
        new = (file, dry_run, parameters, settings, pull, executor, message, after)
        _add_trials(command, check_trials(identity, trials, new), display, allow_env or [])
        return
    if executor is not None:
        command = replace(command, environ={**command.environ, "RISEML_EXECUTOR": executor.value})
    source = read_config_source(command.folder, file)
    pairs = parse_pairs(parameters or [], "-p"), parse_pairs(settings or [], "--set")
    note = None if message is None else read_message(message)
    predecessors = check_predecessors(after or [], "--after")
    submission = prepare_run(command, source, *pairs, pull=pull)
    if predecessors:
        submission["after"] = predecessors
    if note is not None:
        submission["annotation"] = {"note": note}
    if dry_run:
        _show_plan(command, source, submission, json=json)
        return
    confirm_environment(command, source, submission, allow_env or [])
    with closing(send_with_revision(command, source, submission, quiet=json)) as client:
        _show_run(command, client, submit_experiment(command, client, submission), display)


def read_message(text: str) -> str:
    """Return the note of `-m`.

    Raises:
        UsageError: it is empty, too long, or no text.
    """
    if not text.strip():
        raise UsageError("-m is empty", "write what the run is for: `-m 'lr warmup'`, or leave -m out")
    return read_text("note", text)


def _show_run(command: CommandContext, client: Client, experiment: wire.ExperimentView, display: Shown) -> None:
    """Follow an experiment that the server has accepted, or say that it runs in the background."""
    if display.json:
        command.printer.print_json(experiment)
    if not display.detach:
        follow_to_end(command, client, experiment, json=display.json, long=display.long)
    if not display.json:
        command.printer.print_lines([describe_start(experiment)])


@dataclass(frozen=True, slots=True)
class Shown:
    """Options for showing the experiment that a command has started."""

    detach: bool
    json: bool
    long: bool


def _add_trials(command: CommandContext, request: tuple[str, int], display: Shown, allowed: list[str]) -> None:
    """Add trials to a set, and follow its log."""
    client, experiment = add_trials(command, *request, allowed)
    with closing(client):
        _show_run(command, client, experiment, display)


def describe_start(experiment: wire.ExperimentView) -> str:
    """Return the message about an experiment that runs on without this command."""
    name = clean_text(experiment["id"])
    members = experiment["experiments"]
    if members:
        search = experiment.get("search")
        count = count_noun(search["trials"], "trial") if search else count_noun(len(members), "experiment")
        return f"Set {name} of {count} runs in the background. Type `riseml logs {name}` for its log."
    return f"Experiment {name} runs in the background. Type `riseml logs {name}` for its log."


def follow_to_end(
    command: CommandContext, client: Client, experiment: wire.ExperimentView, *, json: bool, long: bool
) -> NoReturn:
    """Follow the log of an experiment, and end with its exit code."""
    from riseml.cli.log_follower import LogDisplay, follow_log, get_exit_code

    end = follow_log(command, client, experiment, LogDisplay(json=json, long=long))
    raise Exit(get_exit_code(end))


def prepare_run(
    command: CommandContext, source: ConfigSource, parameters: Pairs, settings: Pairs, *, pull: bool = False
) -> wire.Submission:
    """Return the submission without the project's files; every problem of riseml.yml is printed.

    Raises:
        Exit: riseml.yml has errors.
        SpecError: it has, and the user wrote --json.
        UsageError: riseml cannot run the framework, or train.env passes on a variable that is not set.
    """
    from riseml.spec.yaml.problems import SpecError, count_problems

    try:
        return prepare_submission(command, source, parameters, settings, pull=pull)
    except SpecError as error:
        if command.json_errors:
            raise
        command.printer.say(f"{source.name} has {count_problems(error.problems)}. Nothing was started.")
        raise Exit(error.exit_code) from None


def submit_experiment(command: CommandContext, client: Client, submission: wire.Submission) -> wire.ExperimentView:
    """Submit exactly one experiment, also when an answer is lost.

    Raises:
        Exit: the user pressed Ctrl-C.
    """
    try:
        return submit_once(client, submission)
    except KeyboardInterrupt:
        command.printer.say("", "Interrupted; the server may have accepted it: `riseml status` shows it then.")
        raise Exit(Interrupted.exit_code) from None


def _show_plan(command: CommandContext, source: ConfigSource, submission: wire.Submission, *, json: bool) -> None:
    """Print what the server would do."""
    from riseml.cli.output.plan_view import list_plan
    from riseml.submission.dry_run import make_dry_run

    plan = make_dry_run(command, source, submission).plan
    if json:
        command.printer.print_json(plan)
    else:
        command.printer.print_lines(list_plan(plan, command.printer.style))
        search = plan.get("search")  # a server of an earlier version does not say it
        count = count_noun(len(plan["experiments"]), "experiment")
        subject = f"A search of {count_noun(search['trials'], 'trial')}" if search else count
        command.printer.say(f"{subject}; nothing was started.")
