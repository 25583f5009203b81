"""`exec`, `shell`: run commands in a running job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.errors import Conflict, UsageError
from riseml.base.names import parse_id
from riseml.cli.arguments import choose_experiment_id
from riseml.cli.context import CommandContext, Exit
from riseml.cli.output.style import ENDED_STATES
from riseml.cli.output.text import clean_text

if TYPE_CHECKING:
    from riseml import wire
    from riseml.client.server_client import Client

JobArgument = Annotated[str, typer.Argument(metavar="ID", show_default=False, help="The job: 4.worker.1, or 4.")]
OptionalJobArgument = Annotated[
    str | None,
    typer.Argument(metavar="ID", show_default=False, help="The job. Default: the project's last experiment."),
]


def run_command(
    context: typer.Context,
    identity: JobArgument,
    words: Annotated[
        list[str],
        typer.Argument(metavar="-- COMMAND...", show_default=False, help="The command, with its own options."),
    ],
    *,
    terminal: Annotated[bool, typer.Option("-t", "--tty", help="Give the command your terminal.")] = False,
) -> None:
    """Run a command in a running job.

    For example: `riseml exec 4.worker.1 -- nvidia-smi`. The command has the job's user, folder and variables.
    What it starts ends with it, or when you leave it.
    The exit code is that of the command.
    """
    from riseml.base.stream_messages import CommandRequest
    from riseml.cli.job_command import read_window_size, run_in_job

    command: CommandContext = context.obj
    job_command = words[1:] if words[:1] == ["--"] else words
    if not job_command:
        raise UsageError("no command was given", "write `riseml exec 4.worker.1 -- nvidia-smi`")
    if terminal:
        _demand_terminal("--tty")
    with command.connect() as client:
        job = choose_job(command, client, identity)
        request = CommandRequest(tuple(job_command), read_window_size() if terminal else None, _find_term(command))
        with client.watch_server():
            code = run_in_job(client.address, job, request)
        raise Exit(code)


def open_shell(context: typer.Context, identity: OptionalJobArgument = None) -> None:
    """Open a shell in a running job, on your terminal.

    It has the job's user, folder and variables. What it starts ends with it.
    The exit code is that of the shell.
    """
    from riseml.base.stream_messages import CommandRequest
    from riseml.cli.job_command import read_window_size, run_in_job

    command: CommandContext = context.obj
    _demand_terminal("a shell")
    with command.connect() as client:
        job = choose_job(command, client, identity)
        command.printer.say(f"A shell in {job}; `exit` or Ctrl-D leaves it. The job runs on.")
        request = CommandRequest((), read_window_size(), _find_term(command))
        with client.watch_server():
            code = run_in_job(client.address, job, request)
        raise Exit(code)


def choose_job(command: CommandContext, client: Client, identity: str | None) -> str:
    """Return the ID of the one job that the user named, or chooses on a terminal.

    Raises:
        UsageError: the ID names several jobs, and the user cannot be asked.
        Conflict: none of them runs.
    """
    names = find_running_jobs(client, choose_experiment_id(command, client, identity))
    if len(names) == 1:
        return names[0]
    if not command.asks:
        raise UsageError(f"{identity or 'it'} has several jobs", f"name one: {', '.join(names)}")
    return _ask_for_job(command, names)


def find_running_jobs(client: Client, identity: str) -> list[str]:
    """Return the IDs of the jobs that an ID names and that run. A single job is returned in any state: the server
    reports why it cannot be entered.

    Raises:
        UsageError: there is none, or the ID names a set.
        Conflict: none of several runs.
    """
    jobs = list_named_jobs(client, identity)
    running = [job["id"] for job in jobs if job["state"] == "RUNNING"]
    if running or len(jobs) == 1:
        return running or [jobs[0]["id"]]
    states = ", ".join(f"{job['id']} is {job['state']}" for job in jobs)
    ended = all(job["state"] in ENDED_STATES for job in jobs)
    raise Conflict(f"no job of {identity} runs: {states}", None if ended else f"`riseml explain {identity}` says why")


def list_named_jobs(client: Client, identity: str) -> list[wire.JobView]:
    """Return the jobs that an ID names, without the build.

    Raises:
        UsageError: there is none, or the ID names a set.
    """
    experiment = client.get_experiment(identity)
    if experiment["type"] == "set":
        raise UsageError(f"{identity} is a set", f"name a job of one of its experiments: {identity}.1.master")
    jobs = [job for job in experiment["jobs"] if job["name"] != "build"]
    if not jobs:
        raise UsageError(f"{identity} builds the environment and cannot be entered", "name another job")
    return jobs


def _ask_for_job(command: CommandContext, names: list[str]) -> str:
    lines = [f"  {number}  {name}" for number, name in enumerate(names, 1)]
    command.printer.say("Which job?", *lines)
    answer = command.ask_for_text("Number or name").strip()
    chosen = dict(enumerate(names, 1)).get(int(answer)) if answer.isdecimal() and len(answer) < 9 else None
    matching = [name for name in names if answer in (name, parse_id(name).job)]
    if chosen is None and len(matching) != 1:
        raise UsageError(f"there is no job {clean_text(answer)!r} to choose", f"name one of {', '.join(names)}")
    return chosen or matching[0]


def _demand_terminal(purpose: str) -> None:
    import sys

    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
        raise UsageError(
            f"{purpose} needs a terminal at standard input and output",
            "without one: `riseml exec 4.worker.1 -- COMMAND`",
        )


def _find_term(command: CommandContext) -> str:
    """Return the kind of the user's terminal; programs in the job may know it."""
    term = command.environ.get("TERM", "")
    return term if term.isascii() and term.isprintable() and len(term) <= 64 else ""
