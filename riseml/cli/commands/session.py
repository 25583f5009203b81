"""`session`: browsers and commands that are logged in at a team's server."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.accounts import check_account_name
from riseml.base.api_keys import KEY_PREFIX
from riseml.base.errors import UsageError
from riseml.cli.commands.options import JsonOption
from riseml.cli.context import CommandContext
from riseml.cli.help_text import add_subcommand

if TYPE_CHECKING:
    from riseml import wire

session_app = typer.Typer(help="List the browsers and commands that are logged in, and end their sessions.")

_SESSION_ID = re.compile(r"[0-9a-f]{16}")


@add_subcommand(session_app, "list", "riseml session list")
def list_sessions(
    context: typer.Context,
    *,
    user: Annotated[
        str | None,
        typer.Option("--user", metavar="USER", show_default=False, help="For admins: whose. Default: yours."),
    ] = None,
    all_users: Annotated[bool, typer.Option("-u", "--all-users", help="For admins: of all users.")] = False,
    json: JsonOption = False,
) -> None:
    """List sessions: of which browser or command, from where, and when they were used last."""
    command: CommandContext = context.obj
    if user is not None and all_users:
        raise UsageError("--user and --all-users contradict each other", "give one of them")
    if user is not None:
        check_account_name("user", user)
    with command.connect() as client:
        sessions = client.open_accounts().list_sessions("*" if all_users else user)
    _print(command, sessions, json=json)


@add_subcommand(session_app, "revoke", "riseml session revoke 5f0c1a2b3d4e5f60")
def revoke_session(
    context: typer.Context,
    session: Annotated[
        str, typer.Argument(metavar="ID", show_default=False, help="As `riseml session list` shows it.")
    ],
    *,
    json: JsonOption = False,
) -> None:
    """End a session: its browser or command has to log in again."""
    command: CommandContext = context.obj
    if _SESSION_ID.fullmatch(session) is None:
        name = "what lets a caller in" if session.startswith(KEY_PREFIX) else repr(session[:80])
        raise UsageError(f"{name} is not the ID of a session", "`riseml session list` shows them")
    with command.connect() as client:
        sessions = client.open_accounts().end_session(session)
    if json:
        command.printer.print_json(sessions)
    else:
        command.printer.print_lines([f"Ended the session {session}."])


def _print(command: CommandContext, sessions: wire.Sessions, *, json: bool) -> None:
    from riseml.cli.output.account_views import list_session_rows

    if json:
        command.printer.print_json(sessions)
    else:
        command.printer.print_lines(list_session_rows(sessions["sessions"], command.now(), command.printer.style))
