"""`project`: the projects that users of a team's server share."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.accounts import check_account_name
from riseml.base.errors import Refused
from riseml.cli.commands.account_options import ProjectArgument, UserArgument
from riseml.cli.commands.options import JsonOption
from riseml.cli.context import CommandContext, Exit
from riseml.cli.help_text import add_subcommand

if TYPE_CHECKING:
    from riseml import wire

project_app = typer.Typer(help="Make, show and change the projects that users share.")


class ProjectRole(Enum):
    """What a member of a project may do."""

    VIEWER = "viewer"
    MEMBER = "member"
    MAINTAINER = "maintainer"


@add_subcommand(project_app, "create", "riseml project create vision", "riseml project create demos --open")
def create_project(
    context: typer.Context,
    project: ProjectArgument,
    *,
    open: Annotated[bool, typer.Option("--open", help="Every user sees its experiments.")] = False,
    json: JsonOption = False,
) -> None:
    """Make a project that users share.

    Experiments that its members run from now on, with this name as `project` in riseml.yml, belong to it.
    """
    command: CommandContext = context.obj
    check_account_name("project", project)
    with command.connect() as client:
        new_project = client.open_accounts().create_project({"name": project, "open": open})
    _print_project(command, new_project, json=json)


@add_subcommand(project_app, "list", "riseml project list")
def list_all_projects(context: typer.Context, *, json: JsonOption = False) -> None:
    """List the projects that you see: yours, and those that are open to all."""
    from riseml.cli.output.account_views import list_projects

    command: CommandContext = context.obj
    with command.connect() as client:
        projects = client.open_accounts().list_projects()
    if json:
        command.printer.print_json({"projects": projects})
    else:
        command.printer.print_lines(list_projects(projects, command.printer.style))


@add_subcommand(project_app, "show", "riseml project show vision")
def show_one_project(context: typer.Context, project: ProjectArgument, *, json: JsonOption = False) -> None:
    """Show a project with its members."""
    command: CommandContext = context.obj
    check_account_name("project", project)
    with command.connect() as client:
        view = client.open_accounts().get_project(project)
    _print_project(command, view, json=json)


@add_subcommand(project_app, "add", "riseml project add vision paul", "riseml project add vision ann --role viewer")
def add_member(
    context: typer.Context,
    project: ProjectArgument,
    user: UserArgument,
    *,
    role: Annotated[
        ProjectRole, typer.Option("--role", metavar="ROLE", help="What the user may do in the project.")
    ] = ProjectRole.MEMBER,
    json: JsonOption = False,
) -> None:
    """Make a user a member of a project, or give a member another role.

    A viewer sees the experiments of the project, a member also runs some and changes their own, and a maintainer
    changes those of all members.
    """
    command: CommandContext = context.obj
    check_account_name("project", project)
    check_account_name("user", user)
    with command.connect() as client:
        changed = client.open_accounts().put_member(project, user, {"role": role.value})
    _print_project(command, changed, json=json)


@add_subcommand(project_app, "remove", "riseml project remove vision paul")
def remove_member(
    context: typer.Context, project: ProjectArgument, user: UserArgument, *, json: JsonOption = False
) -> None:
    """End a membership. The user's experiments in the project stay there."""
    command: CommandContext = context.obj
    check_account_name("project", project)
    check_account_name("user", user)
    with command.connect() as client:
        changed = client.open_accounts().remove_member(project, user)
    _print_project(command, changed, json=json)


@add_subcommand(project_app, "open", "riseml project open vision")
def open_project(context: typer.Context, project: ProjectArgument, *, json: JsonOption = False) -> None:
    """Show the experiments of a project to every user of the server."""
    _change_project(context.obj, project, is_open=True, json=json)


@add_subcommand(project_app, "close", "riseml project close vision")
def close_project(context: typer.Context, project: ProjectArgument, *, json: JsonOption = False) -> None:
    """Show the experiments of a project to its members alone."""
    _change_project(context.obj, project, is_open=False, json=json)


@add_subcommand(project_app, "delete", "riseml project delete vision")
def delete_project(
    context: typer.Context,
    project: ProjectArgument,
    *,
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")] = False,
    json: JsonOption = False,
) -> None:
    """Delete a project. Its experiments and outputs stay, and only their users and admins see them.

    Keys that are bound to the project end.
    """
    command: CommandContext = context.obj
    check_account_name("project", project)
    with command.connect() as client:
        accounts = client.open_accounts()
        accounts.get_project(project)
        if not yes:
            if json or not command.asks:
                raise Refused("no user can agree to that here: nothing was changed", "`--yes` agrees")
            if not command.ask(f"Delete the project {project}?"):
                raise Exit(0)
        deleted = accounts.delete_project(project)
    if json:
        command.printer.print_json(deleted)
    else:
        command.printer.say(f"The project {project} is deleted; its experiments stay with their users.")


def _change_project(command: CommandContext, project: str, *, is_open: bool, json: bool) -> None:
    check_account_name("project", project)
    with command.connect() as client:
        changed = client.open_accounts().open_project(project, is_open=is_open)
    _print_project(command, changed, json=json)


def _print_project(command: CommandContext, project: wire.TeamProjectView, *, json: bool) -> None:
    from riseml.cli.output.account_views import list_project

    if json:
        command.printer.print_json(project)
    else:
        command.printer.print_lines(list_project(project, command.printer.style))
