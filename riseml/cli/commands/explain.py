"""`explain`: why an experiment waits, or why its jobs run where they run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from riseml.cli.arguments import choose_experiment_id
from riseml.cli.commands.options import IdArgument, JsonOption

if TYPE_CHECKING:
    from riseml.cli.context import CommandContext


def explain_experiment(
    context: typer.Context,
    identity: IdArgument = None,
    *,
    json: JsonOption = False,
) -> None:
    """Say why an experiment waits, or where its jobs are and why.

    For an experiment that waits, the answer has one row for each host.
    """
    from riseml.cli.output.explanation_view import list_explanation

    command: CommandContext = context.obj
    with command.connect() as client:
        found = client.explain_experiment(choose_experiment_id(command, client, identity))
    if json:
        command.printer.print_json(found)
    else:
        command.printer.print_lines(list_explanation(found, command.printer.style))
