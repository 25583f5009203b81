"""`train ID --trials N`: further trials of a set whose points a search chooses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from riseml.base.consent import PassedVariable
from riseml.base.errors import UsageError
from riseml.cli.output.text import clean_text
from riseml.client.identities import check_identities, find_identity
from riseml.submission.passed_variables import take_variables

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.context import CommandContext
    from riseml.client.server_client import Client


def check_trials(identity: str | None, trials: int | None, new: Sequence[object]) -> tuple[str, int]:
    """Return the set, and how many trials to add.

    Args:
        identity: the set, if the user names one.
        trials: how many, if the user says so.
        new: options that only a new experiment takes.
    """
    if identity is None or trials is None:
        raise UsageError(
            "an ID and --trials go together: they add trials to a set",
            "`riseml train 144 --trials 20` adds 20 to set 144; `riseml train` alone begins a new one",
        )
    if any(new):
        raise UsageError(
            "further trials run what their set runs, and take no option that changes it",
            "`riseml train` alone begins a new set, with all options",
        )
    check_identities([identity])
    return identity, trials


def add_trials(
    command: CommandContext, identity: str, trials: int, allowed: list[str]
) -> tuple[Client, wire.ExperimentView]:
    """Ask the server for further trials; return the client, which the caller closes, and the set.

    The project's files and its riseml.yml are those with which the set was submitted.

    Raises:
        UsageError: the set has no search, or a variable that its trials need is not set here.
    """
    client = command.connect()
    try:
        identity = find_identity(client, identity)
        experiment = client.get_experiment(identity)
        request: wire.TrialRequest = {"trials": trials, "environment": _collect_variables(command, experiment, allowed)}
        return client, client.add_trials(identity, request)
    except BaseException:
        client.close()
        raise


def _collect_variables(command: CommandContext, experiment: wire.ExperimentView, allowed: list[str]) -> dict[str, str]:
    """Return the caller's variables for the trials of a set, after the user has allowed them."""
    from riseml.submission.consent_questions import confirm_variables

    search = experiment.get("search")
    names = [] if search is None else [clean_text(name) for name in search["variables"]]
    missing = [name for name in names if name not in command.environ]
    if missing:
        are = "it is" if len(missing) == 1 else "they are"
        raise UsageError(
            f"the trials need {', '.join(missing)}, and here {are} not set",
            f"export {' '.join(f'{name}=...' for name in missing)}",
        )
    folder = str(command.folder.resolve())
    variables = [PassedVariable(folder, clean_text(experiment["project"]), name) for name in names]
    confirm_variables(command, variables, allowed, f"set {clean_text(experiment['id'])}")
    return take_variables(names, command.environ)
