"""`compare`: what differs between experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.errors import UsageError
from riseml.cli.commands.options import JsonOption

if TYPE_CHECKING:
    from riseml.cli.context import CommandContext

_MOST = 20  # experiments at once


def compare_experiments(
    context: typer.Context,
    identities: Annotated[list[str], typer.Argument(metavar="ID ID...", show_default=False, help="Two or more.")],
    *,
    every: Annotated[
        bool,
        typer.Option("--all", help="Show all metrics, with their smallest and largest values."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show what differs: parameters, riseml.yml, code and metrics.

    What is the same is not shown. riseml.yml is compared as resolved: with defaults, and with what -p and --set have
    changed. Of the project's files the command names those that differ. A metric has its last value.
    """
    from riseml.cli.output.comparison_view import list_comparison
    from riseml.client.identities import check_identities, find_identity

    command: CommandContext = context.obj
    if every and json:
        raise UsageError("--all is for the table, and JSON has all values", "leave --all out")
    if not 2 <= len(identities) <= _MOST:
        number = "there is one ID" if len(identities) == 1 else f"there are {len(identities)} IDs"
        raise UsageError(f"{number}, and compare takes 2 to {_MOST}", "write `riseml compare 4 7`")
    check_identities(identities)
    with command.connect() as client:
        comparison = client.compare_experiments([find_identity(client, identity) for identity in identities])
    if json:
        command.printer.print_json(comparison)
    else:
        command.printer.print_lines(list_comparison(comparison, command.printer.style, every=every))
