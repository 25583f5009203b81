"""`key`: the API keys of a team's server."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.accounts import DEFAULT_KEY_DAYS, MOST_KEY_DAYS, check_account_name
from riseml.base.api_keys import KEY_PREFIX
from riseml.base.errors import UsageError
from riseml.cli.commands.account_options import print_secret
from riseml.cli.commands.options import JsonOption
from riseml.cli.context import CommandContext
from riseml.cli.help_text import add_subcommand

if TYPE_CHECKING:
    from riseml import wire

key_app = typer.Typer(help="Make, list and revoke the API keys of a team's server.")


class KeyScope(Enum):
    """What a key may do at most."""

    READ = "read"
    RUN = "run"
    ADMIN = "admin"


_KEY_ID = re.compile(r"[0-9a-f]{10}")
_UserOption = Annotated[
    str | None, typer.Option("--user", metavar="USER", show_default=False, help="For admins: whose. Default: yours.")
]


@add_subcommand(
    key_app, "create", "riseml key create --name laptop", "riseml key create --scope run --project vision --days 30"
)
def create_key(  # one parameter for each option of the command
    context: typer.Context,
    *,
    name: Annotated[str, typer.Option("--name", metavar="TEXT", help="What the key is for.")] = "",
    scope: Annotated[
        KeyScope | None,
        typer.Option("--scope", metavar="SCOPE", help="What it may do at most. Default: what your own key may do."),
    ] = None,
    project: Annotated[
        str | None, typer.Option("--project", metavar="PROJECT", help="Bind it to this team project.")
    ] = None,
    days: Annotated[
        int, typer.Option("--days", metavar="N", min=1, max=MOST_KEY_DAYS, help="Days until it expires.")
    ] = DEFAULT_KEY_DAYS,
    user: _UserOption = None,
    json: JsonOption = False,
) -> None:
    """Make a key, and print it: it is shown once.

    A key of the scope `read` looks, one of `run` also runs experiments, and one of `admin` may do all that its user may
    do. A key that is bound to a project sees that project alone.
    """
    command: CommandContext = context.obj
    request: wire.NewKeyRequest = {"days": days, "name": name}
    if scope is not None:
        request["scope"] = scope.value
    if project is not None:
        request["project"] = check_account_name("project", project)
    if user is not None:
        request["user"] = check_account_name("user", user)
    with command.connect() as client:
        new_key = client.open_accounts().create_key(request)
    if json:
        command.printer.print_json(new_key)
        return
    from riseml.cli.output.account_views import describe_key

    print_secret(command, new_key["secret"], describe_key(new_key["key"]))


@add_subcommand(key_app, "list", "riseml key list")
def list_all_keys(
    context: typer.Context,
    *,
    user: _UserOption = None,
    all_users: Annotated[bool, typer.Option("-u", "--all-users", help="For admins: the keys of all users.")] = False,
    json: JsonOption = False,
) -> None:
    """List keys: what they may do, and when they were used last."""
    from riseml.cli.output.account_views import list_keys

    command: CommandContext = context.obj
    if user is not None and all_users:
        raise UsageError("--user and --all-users contradict each other", "give one of them")
    if user is not None:
        check_account_name("user", user)
    with command.connect() as client:
        keys = client.open_accounts().list_keys(user, all_users=all_users)
    if json:
        command.printer.print_json({"keys": keys})
    else:
        command.printer.print_lines(list_keys(keys, command.now(), command.printer.style))


@add_subcommand(key_app, "revoke", "riseml key revoke 5f0c1a2b3d")
def revoke_keys(
    context: typer.Context,
    keys: Annotated[
        list[str], typer.Argument(metavar="ID [ID...]", show_default=False, help="As `riseml key list` shows them.")
    ],
    *,
    json: JsonOption = False,
) -> None:
    """End keys for good.

    Requests and open streams with such a key end within five seconds. Experiments go on.
    """
    from riseml.cli.output.account_views import list_keys

    command: CommandContext = context.obj
    for key in keys:
        _check_key_id(key)
    with command.connect() as client:
        accounts = client.open_accounts()
        revoked = [accounts.revoke_key(key) for key in dict.fromkeys(keys)]
    if json:
        command.printer.print_json({"keys": revoked})
    else:
        command.printer.print_lines(list_keys(revoked, command.now(), command.printer.style))


def _check_key_id(key: str) -> None:
    """Refuse what is not the id of a key; a key itself is not repeated in the message.

    Raises:
        UsageError: it is not.
    """
    if key.startswith(KEY_PREFIX):
        raise UsageError(
            "a key is written where its ID belongs: it may be in your shell's history now",
            "`riseml key list` shows the ID of the key with the same last eight characters",
        )
    if _KEY_ID.fullmatch(key) is None:
        raise UsageError(f"{key[:80]!r} is not the ID of a key", "`riseml key list` shows them")
