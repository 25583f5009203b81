"""`stacks`: in which line of code the processes of running jobs are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from riseml.cli.arguments import choose_experiment_id
from riseml.cli.commands.options import IdArgument, JsonOption, WatchOption
from riseml.cli.refreshed_view import ViewContent, ViewMode, print_view

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.context import CommandContext


def print_stacks(
    context: typer.Context,
    identity: IdArgument = None,
    *,
    native: Annotated[bool, typer.Option("--native", help="Show calls of C, C++ and Rust libraries, too.")] = False,
    local_variables: Annotated[
        bool, typer.Option("--locals", help="Show local variables, too; for the owner alone.")
    ] = False,
    watch: WatchOption = False,
    json: JsonOption = False,
) -> None:
    """Say in which line of code every running job is now.

    riseml reads all processes of all jobs at nearly the same moment, from outside: nothing in the code has to change.
    Ranks at the same place are counted together. Each process stops for some milliseconds, and goes on.
    With --watch the places of all ranks are refreshed, without the stacks.
    """
    from riseml.cli.output.stacks_view import list_places, list_stacks

    command: CommandContext = context.obj
    request: wire.StacksRequest = {"native": native, "variables": local_variables}
    list_lines = list_places if watch else list_stacks
    with command.connect() as client:
        name = choose_experiment_id(command, client, identity)

        def fetch() -> ViewContent:
            stacks = client.read_stacks(name, request)
            return ViewContent(stacks, list_lines(stacks, command.printer.style), final=False)

        print_view(command, client, fetch, ViewMode(json, watch))
