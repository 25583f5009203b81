"""`notebook`: a JupyterLab in the environment of the project, on this machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.errors import Conflict, UsageError
from riseml.cli.arguments import parse_pairs
from riseml.cli.commands.options import FileOption, JsonOption, ParameterOption, SettingOption
from riseml.cli.commands.tensorboard import OpenOption, PortOption
from riseml.cli.commands.train import (
    AllowOption,
    prepare_run,
    submit_experiment,
)
from riseml.cli.output.style import ENDED_STATES
from riseml.client.identities import find_identity
from riseml.submission.config_source import read_config_source
from riseml.submission.submitting import confirm_environment, send_project

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.companion import CompanionView
    from riseml.cli.context import CommandContext
    from riseml.client.server_client import Client
    from riseml.submission.config_source import ConfigSource

_JOB = "notebook"
_PORT = 8888
_IDLE = "1h"
_ASK_TOKEN = ("/bin/sh", "-c", 'printf %s "$JUPYTER_TOKEN"')
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


NotebookArgument = Annotated[
    str | None, typer.Argument(metavar="[ID]", show_default=False, help="A notebook that runs. Default: a new one.")
]
GpusOption = Annotated[
    int | None,
    typer.Option("--gpus", min=0, metavar="N", show_default=False, help="GPUs that it gets."),
]
CpusOption = Annotated[
    float | None,
    typer.Option("--cpus", min=0, metavar="N", show_default=False, help="Cores that it gets."),
]
MemOption = Annotated[str | None, typer.Option("--mem", metavar="SIZE", help="Memory that it gets: 16GiB.")]
IdleOption = Annotated[
    str, typer.Option("--idle-timeout", metavar="TIME", help="End it after TIME without anything to do.")
]


def open_notebook(  # noqa: PLR0913  # one parameter for each option of the command
    context: typer.Context,
    identity: NotebookArgument = None,
    *,
    gpus: GpusOption = None,
    cpus: CpusOption = None,
    mem: MemOption = None,
    idle_timeout: IdleOption = _IDLE,
    opens: OpenOption = False,
    local: PortOption = None,
    file: FileOption = None,
    parameters: ParameterOption = None,
    settings: SettingOption = None,
    allow_env: AllowOption = None,
    json: JsonOption = False,
) -> None:
    """Run JupyterLab with the project's environment, code and data.

    The command opens it at 127.0.0.1. It works on a copy of the project in its OUTPUT_DIR, so that what you save stays.
    Ctrl-C ends the forwarding alone;
    `riseml notebook ID` opens it again. `riseml kill ID` ends it, or --idle-timeout without a running cell or a client.
    """
    from riseml.cli.companion import CompanionView, check_local_port

    command: CommandContext = replace(context.obj, asks=context.obj.asks and not json)
    view = CompanionView("JupyterLab", _PORT, local, json, opens)
    check_local_port(view)
    if identity is not None:
        of_new = {"--gpus": gpus, "--cpus": cpus, "--mem": mem, "-f": file, "-p": parameters, "--set": settings}
        _check_open(of_new, idle_timeout)
        with command.connect() as client:
            _forward(command, client, view, client.get_experiment(find_identity(client, identity)))
        return
    source = read_config_source(command.folder, file)
    requested = {"gpus": gpus, "cpus": cpus, "mem": mem}
    resources = [(f"train.resources.{name}", str(value)) for name, value in requested.items() if value is not None]
    pairs = parse_pairs(parameters or [], "-p"), [*parse_pairs(settings or [], "--set"), *resources]
    submission = prepare_run(command, source, *pairs)
    submission["notebook"] = {"idle_timeout": parse_duration(idle_timeout)}
    confirm_environment(command, source, submission, allow_env or [])
    _forward_new(command, source, view, submission)


def _check_open(options: Mapping[str, object], idle_timeout: str) -> None:
    """Check the arguments of a command that opens a running notebook.

    Raises:
        UsageError: an option applies only to a new notebook.
    """
    written = [name for name, value in options.items() if value is not None]
    written += ["--idle-timeout"] if idle_timeout != _IDLE else []
    if written:
        raise UsageError(
            f"{' and '.join(written)}: a notebook that runs keeps what it has",
            "`riseml notebook` without an ID starts one",
        )


def _forward_new(
    command: CommandContext, source: ConfigSource, view: CompanionView, submission: wire.Submission
) -> None:
    """Start a notebook, and forward its port."""
    with closing(send_project(command, source, submission, quiet=view.json)) as client:
        experiment = submit_experiment(command, client, submission)
        name = experiment["id"]
        command.printer.say(
            f"The notebook is job {name}.{_JOB}. Ctrl-C leaves it: `riseml notebook {name}` opens it again,"
            f" `riseml kill {name}` ends it."
        )
        _forward(command, client, view, experiment)


def parse_duration(text: str) -> float:
    """Return `90s`, `30m`, `2h` or `1d` in seconds.

    Raises:
        UsageError: the text is not a duration, or is shorter than a second.
    """
    number = text.strip()[:-1]
    unit = text.strip()[-1:]
    if unit in _UNITS and number.isascii() and number.isdigit() and 0 < len(number) < 9 and int(number):
        return float(min(int(number) * _UNITS[unit], 10**8))
    raise UsageError(f"--idle-timeout {text!r} is not a time", "write 30m, 2h or 1d")


def _forward(command: CommandContext, client: Client, view: CompanionView, experiment: wire.ExperimentView) -> None:
    from riseml.cli.companion import forward_companion, wait_until_it_listens
    from riseml.cli.job_command import ask_job

    identity = experiment["id"]
    if experiment["type"] != _JOB:
        raise UsageError(f"{identity} is not a notebook", "`riseml notebook` without an ID starts one")
    if experiment["state"] in ENDED_STATES:
        raise Conflict(
            f"notebook {identity} has ended ({experiment['state']}); what it saved is in {experiment['output']}",
            "`riseml notebook` starts another one",
        )
    port = wait_until_it_listens(command, client, experiment, view.port)
    job = f"{identity}.{_JOB}"
    token = ask_job(client.address, job, _ASK_TOKEN)
    if not re.fullmatch("[0-9a-f]{48}", token):  # the token comes from the job's output, which is not trusted
        raise Conflict(f"{job} does not say its token", f"`riseml kill {identity}`, then start another one")
    forward_companion(command, client, view, (job, port), lambda address: f"{address}/lab?token={token}")
