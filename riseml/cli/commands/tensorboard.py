"""`tensorboard`: the outputs of experiments in a TensorBoard on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.errors import Conflict, RisemlError
from riseml.cli.arguments import choose_experiment_id
from riseml.cli.commands.options import JsonOption
from riseml.cli.output.style import ENDED_STATES

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.companion import CompanionView
    from riseml.cli.context import CommandContext
    from riseml.client.server_client import Client

_JOB = "tensorboard"
_PORT = 6006

OpenOption = Annotated[bool, typer.Option("--open", help="Open it in your browser.")]
PortOption = Annotated[
    int | None,
    typer.Option("--port", min=0, max=65535, metavar="PORT", show_default=False, help="Of this machine."),
]


def open_tensorboard(
    context: typer.Context,
    identities: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID...]", show_default=False, help="Default: the project's last experiment."),
    ] = None,
    *,
    opens: OpenOption = False,
    local: PortOption = None,
    json: JsonOption = False,
) -> None:
    """Open experiments in a TensorBoard at 127.0.0.1.

    Running ones, ended ones, sets, several together.

    The TensorBoard of a running experiment with `tensorboard: true` is opened itself. For everything else riseml starts
    one, as a job of its own that reads the output folders. It ends with this command, or when this command is lost.
    """
    from riseml.cli.companion import CompanionView, check_local_port

    command: CommandContext = context.obj
    view = CompanionView("TensorBoard", _PORT, local, json, opens)
    check_local_port(view)
    with command.connect() as client:
        chosen = [choose_experiment_id(command, client, identity) for identity in identities or ()]
        chosen = chosen or [choose_experiment_id(command, client, None)]
        experiment = client.get_experiment(chosen[0]) if len(chosen) == 1 else None
        job = None if experiment is None else _find_running_job(experiment)
        if job is not None:
            _forward_own(command, client, view, job)
        elif experiment is not None and experiment["type"] == _JOB:
            _forward_companion(command, client, view, experiment)
        else:
            _forward_new(command, client, view, chosen)


def _find_running_job(experiment: wire.ExperimentView) -> str | None:
    """Return the ID of the TensorBoard that runs as a job of a training."""
    if experiment["type"] != "experiment":
        return None
    running = [job["id"] for job in experiment["jobs"] if job["name"] == _JOB and job["state"] == "RUNNING"]
    return running[0] if running else None


def _forward_own(command: CommandContext, client: Client, view: CompanionView, job: str) -> None:
    """Forward the port of a TensorBoard that is a job of a training. When no program listens there, the server reports
    why."""
    from riseml.cli.companion import find_port, forward_companion
    from riseml.client.port_forward import find_answering_jobs

    port = find_port(client, job, view.port)
    if port is None:
        # raises the server's error, unless the program listens by now
        find_answering_jobs(client.address, [job], view.port)
        port = view.port
    command.printer.say("Ctrl-C ends the forwarding; TensorBoard and the experiment run on.")
    forward_companion(command, client, view, (job, port), lambda address: address)


def _forward_companion(
    command: CommandContext, client: Client, view: CompanionView, experiment: wire.ExperimentView
) -> None:
    from riseml.cli.companion import forward_companion, wait_until_it_listens

    identity = experiment["id"]
    if experiment["state"] in ENDED_STATES:
        names = " ".join(experiment["shows"])
        raise Conflict(
            f"the TensorBoard {identity} has ended ({experiment['state']})", f"`riseml tensorboard {names}` starts one"
        )
    port = wait_until_it_listens(command, client, experiment, view.port)
    forward_companion(command, client, view, (f"{identity}.{_JOB}", port), lambda address: address)


def _forward_new(command: CommandContext, client: Client, view: CompanionView, chosen: Sequence[str]) -> None:
    """Start a TensorBoard over these experiments, forward its port until the user leaves, then end it."""
    import uuid

    from riseml.submission.consent_questions import confirm_processes

    confirm_processes(command, client)
    request: wire.TensorBoardRequest = {"experiments": list(chosen), "key": uuid.uuid4().hex}
    executor = command.settings().executor
    if executor is not None:
        request["executor"] = executor
    experiment = client.submit_tensorboard(request)
    names = ", ".join(experiment["shows"])
    command.printer.say(f"TensorBoard of {names} is job {experiment['id']}.{_JOB}. Ctrl-C ends it.")
    try:
        _forward_companion(command, client, view, experiment)
    finally:
        with suppress(RisemlError):  # it ends by itself when no client uses it
            client.kill_experiment(experiment["id"])
