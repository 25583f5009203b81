"""`explain`: why an experiment waits, or why its jobs run where they run; of a set, what its members do."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import typer

from riseml.cli.arguments import choose_experiment_id
from riseml.cli.commands.options import IdArgument, JsonOption
from riseml.cli.output.style import ENDED_STATES

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.context import CommandContext
    from riseml.client.server_client import Client

_MOST_MEMBERS = 20  # the most members of a set that are explained


def explain_experiment(
    context: typer.Context,
    identity: IdArgument = None,
    *,
    json: JsonOption = False,
) -> None:
    """Say why an experiment waits, or where its jobs are and why.

    Of a set the command says what runs, what waits, and what follows. For an experiment that waits, the answer has
    one row for each host.
    """
    from riseml.cli.output.explanation_view import list_explanation, list_set_explanation

    command: CommandContext = context.obj
    with command.connect() as client:
        experiment = client.get_experiment(choose_experiment_id(command, client, identity))
        if experiment["type"] == "set":
            of_set = explain_set(client, experiment)
            answer: object = of_set
            lines = list_set_explanation(of_set, command.printer.style)
        else:
            answer = explanation = client.explain_experiment(experiment["id"])
            lines = list_explanation(explanation, command.printer.style)
    if json:
        command.printer.print_json(answer)
    else:
        command.printer.print_lines(lines)


def explain_set(client: Client, experiment: wire.ExperimentView) -> wire.SetExplanation:
    """Return what the members of a set do. Waiting members come first: the user asks about them."""
    search = experiment.get("search")  # a server of an earlier version has no searches
    members = experiment["experiments"]
    active = [member for member in members if member["state"] not in ENDED_STATES]
    active.sort(key=lambda member: member["started_at"] is not None)
    return {
        "id": experiment["id"],
        "state": experiment["state"],
        "counts": dict(Counter(member["state"] for member in members)),
        "search": None if search is None else search.get("next"),
        "members": [client.explain_experiment(member["id"]) for member in active[:_MOST_MEMBERS]],
    }
