"""`user` and `whoami`: the users of a team's server."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.accounts import check_account_name, check_email, check_ids, check_subject
from riseml.base.errors import UsageError
from riseml.cli.commands.account_options import UserArgument, print_secret
from riseml.cli.commands.options import JsonOption
from riseml.cli.context import CommandContext
from riseml.cli.help_text import add_subcommand

if TYPE_CHECKING:
    from riseml import wire

user_app = typer.Typer(help="Make, change and show the users of a team's server.")


class UserRole(Enum):
    """What a user may be."""

    VIEWER = "viewer"
    MEMBER = "member"
    ADMIN = "admin"


_RoleOption = Annotated[
    UserRole | None,
    typer.Option("--role", metavar="ROLE", help="What the user may do; a new user is member without it."),
]
_UidOption = Annotated[
    int | None, typer.Option("--uid", metavar="N", help="Whose jobs and outputs the machines see; 1000 or more.")
]
_GidOption = Annotated[int | None, typer.Option("--gid", metavar="N", help="Default: the number of --uid.")]
_EmailOption = Annotated[str | None, typer.Option("--email", metavar="ADDRESS", help="For people: no mail is sent.")]
_SharedOption = Annotated[
    bool, typer.Option("--shared-uid", help="Another user may have the uid: each can read the outputs of the other.")
]


def print_caller(context: typer.Context, *, json: JsonOption = False) -> None:
    """Show who you are for the server, and what you may do."""
    from riseml.cli.output.account_views import list_caller

    command: CommandContext = context.obj
    with command.connect() as client:
        caller = client.open_accounts().get_caller()
    if json:
        command.printer.print_json(caller)
    else:
        command.printer.print_lines(list_caller(caller))


@add_subcommand(
    user_app, "create", "riseml user create paul --uid 2001", "riseml user create ann --role viewer --email ann@lab.org"
)
def create_user(  # noqa: PLR0913  # one parameter for each option of the command
    context: typer.Context,
    user: UserArgument,
    *,
    role: _RoleOption = None,
    uid: _UidOption = None,
    gid: _GidOption = None,
    email: _EmailOption = None,
    shared_uid: _SharedOption = False,
    json: JsonOption = False,
) -> None:
    """Make a user, and print their first key: it is shown once.

    Give the key to the user, who runs `riseml login` with it. A name is never given to another user again.
    """
    command: CommandContext = context.obj
    request: wire.NewUserRequest = {"name": check_account_name("user", user)}
    _put_values(request, role, (uid, gid), email, shared_uid=shared_uid)
    with command.connect() as client:
        new_user = client.open_accounts().create_user(request)
    if json:
        command.printer.print_json(new_user)
        return
    from riseml.cli.output.account_views import describe_key, list_user

    print_secret(command, new_user["secret"], *list_user(new_user["user"]), describe_key(new_user["key"]))


@add_subcommand(user_app, "update", "riseml user update paul --role admin", "riseml user update paul --uid 2001")
def update_user(  # noqa: PLR0913  # one parameter for each option of the command
    context: typer.Context,
    user: UserArgument,
    *,
    role: _RoleOption = None,
    uid: _UidOption = None,
    gid: _GidOption = None,
    email: _EmailOption = None,
    shared_uid: _SharedOption = False,
    json: JsonOption = False,
) -> None:
    """Change the role, the uid or the e-mail address of a user.

    Experiments and outputs that exist keep the uid that they have.
    """
    request: wire.UserChangeRequest = {}
    _put_values(request, role, (uid, gid), email, shared_uid=shared_uid)
    if not request or set(request) == {"shared_uid"}:
        raise UsageError("nothing is to be changed", "give --role, --uid, --gid or --email")
    _change_user(context.obj, user, request, json=json)


@add_subcommand(user_app, "disable", "riseml user disable paul")
def disable_user(context: typer.Context, user: UserArgument, *, json: JsonOption = False) -> None:
    """Take no key of a user any more.

    Requests and open streams of the user end within five seconds. Experiments go on, and outputs stay. `riseml user
    enable` takes it back.
    """
    _change_user(context.obj, user, {"disabled": True}, json=json)


@add_subcommand(user_app, "enable", "riseml user enable paul")
def enable_user(context: typer.Context, user: UserArgument, *, json: JsonOption = False) -> None:
    """Take the keys of a disabled user again.

    Keys that were revoked or have expired stay so.
    """
    _change_user(context.obj, user, {"disabled": False}, json=json)


@add_subcommand(user_app, "link", "riseml user link paul 248289761001")
def link_user(
    context: typer.Context,
    user: UserArgument,
    subject: Annotated[str, typer.Argument(metavar="SUBJECT", help="The claim `sub` of the person at the provider.")],
    *,
    json: JsonOption = False,
) -> None:
    """Say which person of the organisation's provider a user is.

    A user whom an admin has made is nobody at the provider; this person logs in as the user from then on, and nobody
    else does. Sessions that the provider has opened for the user end. Keys stay.
    """
    command: CommandContext = context.obj
    check_account_name("user", user)
    check_subject(subject)
    with command.connect() as client:
        view = client.open_accounts().link_user(user, subject)
    _print_user(command, view, json=json)


@add_subcommand(user_app, "list", "riseml user list")
def list_all_users(context: typer.Context, *, json: JsonOption = False) -> None:
    """List the users."""
    from riseml.cli.output.account_views import list_users

    command: CommandContext = context.obj
    with command.connect() as client:
        users = client.open_accounts().list_users()
    if json:
        command.printer.print_json({"users": users})
    else:
        command.printer.print_lines(list_users(users, command.printer.style))


@add_subcommand(user_app, "display", "riseml user display paul")
def display_user(
    context: typer.Context,
    user: Annotated[str | None, typer.Argument(metavar="USER", show_default=False, help="Default: yourself.")] = None,
    *,
    json: JsonOption = False,
) -> None:
    """Show one user."""
    command: CommandContext = context.obj
    if user is not None:
        check_account_name("user", user)
    with command.connect() as client:
        accounts = client.open_accounts()
        view = accounts.get_user(accounts.get_caller()["user"] if user is None else user)
    _print_user(command, view, json=json)


def _change_user(command: CommandContext, user: str, request: wire.UserChangeRequest, *, json: bool) -> None:
    check_account_name("user", user)
    with command.connect() as client:
        changed = client.open_accounts().change_user(user, request)
    _print_user(command, changed, json=json)


def _print_user(command: CommandContext, user: wire.UserView, *, json: bool) -> None:
    from riseml.cli.output.account_views import list_user

    if json:
        command.printer.print_json(user)
    else:
        command.printer.print_lines(list_user(user))


def _put_values(
    request: wire.NewUserRequest | wire.UserChangeRequest,
    role: UserRole | None,
    ids: tuple[int | None, int | None],
    email: str | None,
    *,
    shared_uid: bool,
) -> None:
    """Put the values that the user gave into a request; wrong ones are refused before a server is asked."""
    uid, gid = ids
    check_ids(uid, gid)
    if uid is not None:
        request["uid"] = uid
    if gid is not None:
        request["gid"] = gid
    if role is not None:
        request["role"] = role.value
    if email is not None:
        request["email"] = check_email(email)
    if shared_uid:
        request["shared_uid"] = True
