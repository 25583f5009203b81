"""`save`: copy the output of an experiment into its store now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.errors import Interrupted, Unreachable, UsageError
from riseml.cli.arguments import choose_experiment_id
from riseml.cli.commands.options import IdArgument, JsonOption
from riseml.cli.context import CommandContext, Exit

if TYPE_CHECKING:
    from riseml import wire
    from riseml.client.server_client import Client

_INTERVAL = 0.5  # seconds between two requests


PassKeysOption = Annotated[
    bool,
    typer.Option(
        "--pass-keys",
        help="Pass on AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN, if set) for this copy: "
        "a closed experiment has no keys any more.",
    ),
]


def save_output(
    context: typer.Context, identity: IdArgument = None, *, pass_keys: PassKeysOption = False, json: JsonOption = False
) -> None:
    """Copy the output of an experiment into its store now.

    `train.save` names the store. The command copies while the experiment runs, and after its end when the last copy
    failed. Only what has changed travels.
    """
    from riseml.cli.output.saved_view import list_saved

    command: CommandContext = context.obj
    keys = _read_keys(command.environ) if pass_keys else None
    with command.connect() as client:
        chosen = choose_experiment_id(command, client, identity)
        client.save_output(chosen, keys)
        try:
            saved_view = _wait(command, client, chosen)
        except KeyboardInterrupt:
            command.printer.say("", f"The copy goes on. `riseml show {chosen} --saved` shows how far it is.")
            raise Exit(Interrupted.exit_code) from None
    if json:
        command.printer.print_json(saved_view)
    else:
        command.printer.print_lines(list_saved(saved_view, command.now(), command.printer.style))
    if saved_view["trouble"]:
        raise Exit(Unreachable.exit_code)


def _wait(command: CommandContext, client: Client, identity: str) -> wire.SavedView:
    while True:
        saved_view = client.get_saved(identity)
        if saved_view["state"] != "saving":
            return saved_view
        command.wait(_INTERVAL)


def _read_keys(environ: Mapping[str, str]) -> wire.StoreKeys:
    """Return the keys of the user's shell.

    Raises:
        UsageError: one is not set.
    """
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        if not environ.get(name):
            raise UsageError(f"{name} is not set", "set it in your shell, and type the command again")
    keys: wire.StoreKeys = {
        "AWS_ACCESS_KEY_ID": environ["AWS_ACCESS_KEY_ID"],
        "AWS_SECRET_ACCESS_KEY": environ["AWS_SECRET_ACCESS_KEY"],
    }
    if environ.get("AWS_SESSION_TOKEN"):
        keys["AWS_SESSION_TOKEN"] = environ["AWS_SESSION_TOKEN"]
    return keys
