"""What `show` and `status` print of one experiment: its jobs, its capsule, or what of it is saved in a store."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from riseml.base.errors import UsageError
from riseml.cli.arguments import choose_experiment_id
from riseml.cli.refreshed_view import ViewContent, ViewMode, print_view

if TYPE_CHECKING:
    from riseml.cli.context import CommandContext
    from riseml.client.server_client import Client


class ExperimentPart(enum.Enum):
    """What the user asks for."""

    JOBS = "the experiment with its jobs"
    CAPSULE = "what is needed to run it again"
    SAVED = "its files in a store"


def choose_part(*, capsule: bool, saved: bool) -> ExperimentPart:
    """Return the part that the options name.

    Raises:
        UsageError: both options are given.
    """
    if capsule and saved:
        raise UsageError("`--capsule` and `--saved` are two views", "choose one of them")
    return ExperimentPart.CAPSULE if capsule else ExperimentPart.SAVED if saved else ExperimentPart.JOBS


def print_part(
    command: CommandContext, identity: str | None, part: ExperimentPart, mode: ViewMode, *, long: bool
) -> None:
    """Print one experiment, or a part of what belongs to it.

    Args:
        command: the running command.
        identity: what the user typed; None: the project's last experiment.
        part: what to print.
        mode: how it is printed.
        long: True for more of each job.

    Raises:
        UsageError: a set has no capsule, the text is not an ID, or the part does not change and is to be watched.
        NotFound: there is no such experiment.
    """
    if mode.refresh and part is not ExperimentPart.JOBS:
        raise UsageError(f"-w shows changes, and {part.value} is printed once", "leave out -w")
    with command.connect() as client:
        chosen = choose_experiment_id(command, client, identity)
        match part:
            case ExperimentPart.JOBS:
                print_view(command, client, lambda: _fetch_experiment(command, client, chosen, long=long), mode)
            case ExperimentPart.CAPSULE:
                print_view(command, client, lambda: _fetch_capsule(client, chosen), mode)
            case ExperimentPart.SAVED:
                print_view(command, client, lambda: _fetch_saved(command, client, chosen), mode)


def _fetch_experiment(command: CommandContext, client: Client, identity: str, *, long: bool) -> ViewContent:
    from riseml.cli.output.experiment_views import list_experiment

    experiment = client.get_experiment(identity)
    return ViewContent(
        experiment,
        list_experiment(experiment, command.now(), command.printer.style, long=long),
        final=experiment["closed"],
    )


def _fetch_capsule(client: Client, identity: str) -> ViewContent:
    from riseml.cli.output.capsule_view import list_capsule

    if client.get_experiment(identity)["type"] == "set":
        raise UsageError(f"{identity} is a set, and each of its experiments has a capsule", f"name one: `{identity}.1`")
    capsule = client.get_capsule(identity)["capsule"]
    return ViewContent(capsule, list_capsule(capsule), final=True)


def _fetch_saved(command: CommandContext, client: Client, identity: str) -> ViewContent:
    from riseml.cli.output.saved_view import list_saved

    saved_view = client.get_saved(identity)
    return ViewContent(saved_view, list_saved(saved_view, command.now(), command.printer.style), final=True)
