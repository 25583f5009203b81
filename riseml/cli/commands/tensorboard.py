"""`tensorboard`: the TensorBoard of a running experiment on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.cli.arguments import choose_experiment_id
from riseml.cli.commands.forward import show_forward
from riseml.cli.commands.jobs import list_named_jobs
from riseml.cli.commands.options import IdArgument, JsonOption
from riseml.errors import Conflict, NotFound

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.context import CommandContext
    from riseml.cli.port_forward import PortPair
    from riseml.client import Client

_JOB = "tensorboard"
_PORT = 6006  # of this machine, when it is free
_ASK_PORT = ("/bin/sh", "-c", f'echo "${{RISEML_PORT:-{_PORT}}}"')  # as the job's own command chooses it


def open_tensorboard(
    context: typer.Context,
    identity: IdArgument = None,
    *,
    opens: Annotated[bool, typer.Option("--open", help="Open it in your browser.")] = False,
    local: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65535, metavar="PORT", show_default=False, help="Of this machine."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Reach the TensorBoard of a running experiment at 127.0.0.1.

    It is there for experiments with `tensorboard: true`. The address is that of port 6006, or of another one when that
    is in use. Ctrl-C ends the forwarding; TensorBoard and the experiment run on.
    """
    from riseml.cli.job_command import ask_job
    from riseml.cli.port_forward import PortPair, choose_local_port, find_answering_jobs, forward_ports

    command: CommandContext = context.obj
    with command.connect() as client:
        chosen = choose_experiment_id(command, client, identity)
        job = _find_tensorboard(client, chosen)
        answer = ask_job(client.address, job, _ASK_PORT).strip()
        port = int(answer) if answer.isdigit() and len(answer) <= 5 else _PORT
        find_answering_jobs(client.address, [job], port)

        def say(used: Sequence[PortPair]) -> None:
            (shown,) = (show_forward(job, pair) for pair in used)
            if json:
                command.printer.print_json({"forwards": [shown]})
            else:
                command.printer.print_lines([f"TensorBoard of experiment {chosen}: {shown['address']}"])
                command.printer.say("Ctrl-C ends the forwarding; TensorBoard and the experiment run on.")
            if opens:
                _open_browser(shown["address"])

        forward_ports(client.address, job, [PortPair(choose_local_port(_PORT) if local is None else local, port)], say)


def _find_tensorboard(client: Client, identity: str) -> str:
    """Return the ID of the job that is the experiment's TensorBoard.

    Raises:
        NotFound: the experiment has none.
        Conflict: it does not run.
    """
    found: list[wire.JobView] = [job for job in list_named_jobs(client, identity) if job["name"] == _JOB]
    if not found:
        raise NotFound(
            f"experiment {identity} has no TensorBoard", "set `tensorboard: true` below `tensorflow` in riseml.yml"
        )
    (job,) = found
    if job["state"] != "RUNNING":
        raise Conflict(
            f"the TensorBoard of experiment {identity} does not run, it is {job['state']}",
            f"`riseml status {identity}`",
        )
    return job["id"]


def _open_browser(address: str) -> None:
    import webbrowser

    webbrowser.open(address)
