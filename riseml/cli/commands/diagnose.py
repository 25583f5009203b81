"""`diagnose`: why an experiment makes no progress."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from riseml.cli.arguments import choose_experiment_id
from riseml.cli.commands.options import IdArgument, JsonOption

if TYPE_CHECKING:
    from riseml.cli.context import CommandContext


def diagnose_experiment(
    context: typer.Context,
    identity: IdArgument = None,
    *,
    last: Annotated[
        bool, typer.Option("--last", help="Print the last diagnosis, also of an experiment that has ended.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Say why an experiment is stuck: which rank, where, and why.

    The server reads the stacks of all jobs three times, some seconds apart, and compares them. At a stall it does so
    by itself; the output has the answer as diagnosis.txt.
    """
    from riseml.cli.output.diagnosis_view import list_diagnosis

    command: CommandContext = context.obj
    with command.connect() as client:
        chosen = choose_experiment_id(command, client, identity)
        diagnosis = client.get_diagnosis(chosen) if last else client.diagnose_experiment(chosen)
    if json:
        command.printer.print_json(diagnosis)
    else:
        command.printer.print_lines(list_diagnosis(diagnosis, command.now()))
