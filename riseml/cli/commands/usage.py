"""`usage`: what users and projects have used of the pool."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.errors import UsageError
from riseml.cli.arguments import parse_since
from riseml.cli.commands.options import JsonOption

if TYPE_CHECKING:
    from riseml.cli.context import CommandContext


class UsageSubject(enum.Enum):
    """What a row of the table is about."""

    USER = "user"
    PROJECT = "project"


def print_usage(
    context: typer.Context,
    *,
    by: Annotated[UsageSubject, typer.Option("--by", help="One row for each user, or for each project.")] = (
        UsageSubject.USER
    ),
    since: Annotated[
        str, typer.Option("--since", metavar="TIME", help="Begin at TIME: 7d, 12h or 2026-08-31T07:23:46Z.")
    ] = "7d",
    csv: Annotated[bool, typer.Option("--csv", help="Print a table for a spreadsheet.")] = False,
    json: JsonOption = False,
) -> None:
    """Print the GPU hours and core hours that experiments used.

    Hours count while an experiment has its place. USED is how many of its GPU hours the load of the GPUs was, where
    that was measured. WAITED is the time before the places, together.
    """
    if csv and json:
        raise UsageError("--csv and --json are two forms of one answer", "give one of them")
    from riseml.cli.output.quota_views import list_usage, list_usage_csv

    command: CommandContext = context.obj
    with command.connect() as client:
        usage = client.get_usage("user" if by is UsageSubject.USER else "project", parse_since(since, command.now()))
    if json:
        command.printer.print_json(usage)
    elif csv:
        command.printer.print_lines(list_usage_csv(usage))
    else:
        command.printer.print_lines(list_usage(usage, command.printer.style))
