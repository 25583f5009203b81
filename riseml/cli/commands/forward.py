"""`forward`: a port of a job on this machine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.errors import NotFound, UsageError
from riseml.cli.arguments import choose_experiment_id
from riseml.cli.commands.jobs import JobArgument, find_running_jobs
from riseml.cli.commands.options import JsonOption

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.context import CommandContext
    from riseml.client.port_forward import PortPair
    from riseml.client.server_client import Client

_PORTS = re.compile(r"(?:(\d{1,5}):)?(\d{1,5})", re.ASCII)
_LAST_PORT = 65535


def forward_port(
    context: typer.Context,
    identity: JobArgument,
    ports: Annotated[
        list[str],
        typer.Argument(
            metavar="[LOCAL:]PORT...", show_default=False, help="Ports of the job, each with one of this machine."
        ),
    ],
    *,
    json: JsonOption = False,
) -> None:
    """Reach a port of a running job at 127.0.0.1.

    `riseml forward 4.worker.1 8888` listens at 127.0.0.1:8888, and `9999:8888` at 127.0.0.1:9999; Ctrl-C ends it.
    Without a job, the job in which something listens on the port is taken.
    """
    from riseml.client.port_forward import ForwardRequest, forward_ports

    command: CommandContext = context.obj
    pairs = [parse_ports(text) for text in ports]
    with command.connect() as client:
        jobs = find_running_jobs(client, choose_experiment_id(command, client, identity))
        job = choose_answering_job(client, jobs, pairs[0].remote)

        def say(used: Sequence[PortPair]) -> None:
            forwards = [show_forward(job, pair) for pair in used]
            if json:
                command.printer.print_json({"forwards": forwards})
            else:
                command.printer.print_lines(
                    [f"{forward['address']} is port {forward['port']} of {job}" for forward in forwards]
                )
                command.printer.say("Ctrl-C ends it; the job runs on.")

        with client.watch_server():
            forward_ports(client.address, ForwardRequest(job, pairs), say, command.printer.say)


def choose_answering_job(client: Client, jobs: list[str], port: int) -> str:
    """Return the one job in which something listens on a port.

    Raises:
        NotFound: there is none.
        UsageError: there are several.
    """
    from riseml.client.port_forward import find_answering_jobs

    answering = find_answering_jobs(client.address, jobs, port)
    if not answering:
        raise NotFound(f"nothing listens on port {port} in {', '.join(jobs)}", "`riseml logs` shows what listens where")
    if len(answering) > 1:
        raise UsageError(f"something listens on port {port} in several jobs", f"name one: {', '.join(answering)}")
    return answering[0]


def parse_ports(text: str) -> PortPair:
    """Return `8888` or `9999:8888` as ports of this machine and of the job.

    Raises:
        UsageError: the text is neither.
    """
    from riseml.client.port_forward import PortPair

    match = _PORTS.fullmatch(text)
    remote = int(match[2]) if match else 0
    local = int(match[1]) if match and match[1] else remote
    if not 0 < remote <= _LAST_PORT or local > _LAST_PORT:
        raise UsageError(f"{text!r} is not a port", "write 8888, or 9999:8888 for port 9999 of this machine")
    return PortPair(local, remote)


def show_forward(job: str, pair: PortPair) -> wire.ForwardView:
    """Return a forwarded port in its wire shape."""
    return {"job": job, "port": pair.remote, "address": f"http://127.0.0.1:{pair.local}"}
