"""`registry`: the credentials with which images are pulled."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.errors import UsageError
from riseml.base.secrets import check_registry_host, check_secret_value
from riseml.cli.commands.options import JsonOption
from riseml.cli.commands.secret import ProjectOption, read_password, read_standard_input
from riseml.cli.help_text import add_subcommand

if TYPE_CHECKING:
    from riseml.cli.context import CommandContext

registry_app = typer.Typer(help="Log in at registries from which the images of experiments are pulled.")

HostArgument = Annotated[
    str, typer.Argument(metavar="HOST", help="As the image names it: registry.lab:5000.", show_default=False)
]


@add_subcommand(
    registry_app,
    "login",
    "riseml registry login registry.lab:5000 -u paul",
    "riseml registry login registry.lab -u lab --password-stdin --project toaster",
)
def log_in(
    context: typer.Context,
    host: HostArgument,
    *,
    user: Annotated[str, typer.Option("-u", "--user", metavar="USER", help="Your name at the registry.")],
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password or token from standard input.")
    ] = False,
    project: ProjectOption = None,
    json: JsonOption = False,
) -> None:
    """Keep the credential of a registry for your experiments, or for those of a project.

    The server keeps it sealed, and sends it to an engine with each pull from HOST alone. No engine keeps it.
    """
    command: CommandContext = context.obj
    host = check_registry_host(host)
    if not password_stdin and not sys.stdin.isatty():
        raise UsageError("there is no terminal to ask for the password on", "add --password-stdin")
    password = read_standard_input() if password_stdin else read_password(command, f"Password of {user} at {host}")
    check_secret_value(password)
    with command.connect() as client:
        registry = client.log_in_at_registry(host, {"login": user, "password": password}, project)
    if json:
        command.printer.print_json(registry)
    else:
        whose = f"of project {project}" if project else "of yours"
        command.printer.print_lines([f"Images of {host} are pulled as {user} for experiments {whose}."])


@add_subcommand(registry_app, "list", "riseml registry list")
def list_registries(context: typer.Context, *, json: JsonOption = False) -> None:
    """List the registries for which you or your projects have credentials."""
    from riseml.cli.output.secret_views import list_registry_rows

    command: CommandContext = context.obj
    with command.connect() as client:
        answer = client.list_registries()
    if json:
        command.printer.print_json(answer)
    else:
        command.printer.print_lines(list_registry_rows(answer["registries"], command.printer.style))


@add_subcommand(registry_app, "logout", "riseml registry logout registry.lab:5000")
def log_out(
    context: typer.Context, host: HostArgument, *, project: ProjectOption = None, json: JsonOption = False
) -> None:
    """Remove the credential of a registry."""
    command: CommandContext = context.obj
    with command.connect() as client:
        removed = client.log_out_of_registry(check_registry_host(host), project)
    if json:
        command.printer.print_json(removed)
    else:
        command.printer.print_lines([f"The credential of {removed['owner']} for {removed['name']} is removed."])
