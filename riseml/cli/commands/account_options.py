"""What the commands of users, keys and projects share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from riseml.cli.output.text import clean_text

if TYPE_CHECKING:
    from riseml.cli.context import CommandContext

UserArgument = Annotated[str, typer.Argument(metavar="USER", help="Name of a user, such as paul.")]
ProjectArgument = Annotated[str, typer.Argument(metavar="PROJECT", help="Name of a team project, such as vision.")]


def print_secret(command: CommandContext, secret: str, *sentences: str) -> None:
    """Print a new key: alone on standard output, so that a script can take it, and what to know about it beside it."""
    command.printer.say(*sentences)
    command.printer.print_lines([clean_text(secret)])
    command.printer.say("The key is not shown again.")
