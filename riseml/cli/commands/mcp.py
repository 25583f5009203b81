"""`mcp`: a coding agent calls tools of riseml over standard input and output."""

from __future__ import annotations

import math
import sys
from typing import Annotated

import typer

from riseml.base.errors import UsageError
from riseml.cli.context import CommandContext

_USUAL_EXPERIMENTS = 20


def serve_agent(
    context: typer.Context,
    *,
    experiments: Annotated[
        int, typer.Option("--experiments", min=0, max=100_000, metavar="N", help="The agent starts at most N of them.")
    ] = _USUAL_EXPERIMENTS,
    gpu_hours: Annotated[
        float | None,
        typer.Option(
            "--gpu-hours",
            min=0,
            metavar="H",
            show_default=False,
            help="They use at most H hours of GPUs. Default: no limit.",
        ),
    ] = None,
    allow_env: Annotated[
        list[str] | None,
        typer.Option("--allow-env", metavar="NAME", help="Allow riseml.yml to pass on your variable NAME; repeatable."),
    ] = None,
    stop_any: Annotated[
        bool, typer.Option("--stop-any", help="Let the agent stop experiments that it has not started.")
    ] = False,
) -> None:
    """Let a coding agent plan, run and read experiments.

    The agent's program starts this command, and speaks the Model Context Protocol with it over standard input and
    output. It submits projects of the working directory only, after a plan that it was shown, and within the budget.
    It needs the package mcp: pip install 'riseml[mcp]'.
    """
    command: CommandContext = context.obj
    if gpu_hours is not None and math.isnan(gpu_hours):
        raise UsageError("--gpu-hours is nan", "give a number of hours, or leave it out for no limit")
    _check_package()
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(
            "riseml mcp speaks with the program of a coding agent, and this is a terminal",
            "write the command into the configuration of that program: `claude mcp add riseml -- riseml mcp`",
        )
    from riseml.agents.budget import SessionLimits
    from riseml.agents.mcp_server import make_server
    from riseml.agents.session import AgentSession, Permissions

    permissions = Permissions(SessionLimits(experiments, gpu_hours), tuple(allow_env or ()), stop_any)
    make_server(AgentSession(command.folder, command.environ, permissions)).run("stdio")


def _check_package() -> None:
    """Check that the SDK of the protocol is installed.

    Raises:
        UsageError: it is not.
    """
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        raise UsageError("riseml mcp needs the package mcp, which is not installed", "pip install 'riseml[mcp]'")
