"""`secret`: values that jobs read and that nobody sees again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.errors import UsageError
from riseml.base.secrets import LONGEST_SECRET, check_secret_name, check_secret_value
from riseml.cli.commands.options import JsonOption
from riseml.cli.help_text import add_subcommand

if TYPE_CHECKING:
    from riseml.cli.context import CommandContext

secret_app = typer.Typer(help="Set the secrets that riseml.yml names; their values are never shown.")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="As riseml.yml names it: hf.", show_default=False)]
ProjectOption = Annotated[
    str | None, typer.Option("--project", metavar="PROJECT", help="Of this project; without it, your own.")
]
_STANDARD_INPUT = "-"


@add_subcommand(
    secret_app,
    "set",
    "riseml secret set hf",
    "riseml secret set hf --file token.txt",
    "riseml secret set deploy-key --file ~/.ssh/id_deploy --project toaster",
)
def set_secret(
    context: typer.Context,
    words: Annotated[list[str], typer.Argument(metavar="NAME", help="As riseml.yml names it: hf.", show_default=False)],
    *,
    file: Annotated[
        str | None, typer.Option("--file", metavar="FILE", help="Read the value from FILE as it is; - is stdin.")
    ] = None,
    project: ProjectOption = None,
    json: JsonOption = False,
) -> None:
    """Set a secret, in place of an earlier value.

    The value comes from a question without echo, from standard input or from a file, and never from the command line,
    which other users of the machine and the history of the shell see. Of standard input, a last newline is left out.
    """
    command: CommandContext = context.obj
    name = check_secret_name(words[0])
    if len(words) > 1:
        raise UsageError(
            "a value is no argument: other users of the machine and the history of your shell would see it",
            f"write `riseml secret set {name}`, which asks for it; and replace that value, which was seen",
        )
    value = check_secret_value(_read_value(command, name, file))
    with command.connect() as client:
        secret = client.set_secret(name, value, project)
    if json:
        command.printer.print_json(secret)
    else:
        whose = f"The secret {name} of project {project}" if project else f"Your secret {name}"
        command.printer.print_lines([f"{whose} is set. In riseml.yml: `env: {{NAME: {{secret: {name}}}}}`"])


@add_subcommand(secret_app, "list", "riseml secret list")
def list_secrets(context: typer.Context, *, json: JsonOption = False) -> None:
    """List your secrets and those of your projects, without their values."""
    from riseml.cli.output.secret_views import list_secret_rows

    command: CommandContext = context.obj
    with command.connect() as client:
        answer = client.list_secrets()
    if json:
        command.printer.print_json(answer)
    else:
        command.printer.print_lines(list_secret_rows(answer["secrets"], command.printer.style))


@add_subcommand(secret_app, "remove", "riseml secret remove hf")
def remove_secret(
    context: typer.Context, name: NameArgument, *, project: ProjectOption = None, json: JsonOption = False
) -> None:
    """Remove a secret. Jobs that run keep the value they have."""
    command: CommandContext = context.obj
    check_secret_name(name)
    with command.connect() as client:
        removed = client.remove_secret(name, project)
    if json:
        command.printer.print_json(removed)
    else:
        command.printer.print_lines([f"The secret {name} of {removed['owner']} is removed."])


def read_password(command: CommandContext, question: str) -> str:
    """Return what the user types without echo.

    Raises:
        UsageError: there is no terminal.
    """
    import getpass

    if not command.asks:
        raise UsageError("there is no terminal to ask on", "give the value on standard input, or with --file")
    return getpass.getpass(f"{question}: ", stream=sys.stderr)


def read_standard_input() -> str:
    """Return the value on standard input, without its last newline.

    Raises:
        UsageError: it is not UTF-8 text.
    """
    text = _decode(sys.stdin.buffer.read(LONGEST_SECRET + 2), "standard input")
    return text.removesuffix("\n").removesuffix("\r")


def _read_value(command: CommandContext, name: str, file: str | None) -> str:
    if file is None and sys.stdin.isatty():
        return read_password(command, f"Value of {name}")
    if file is None or file == _STANDARD_INPUT:
        return read_standard_input()
    path = command.folder / Path(file).expanduser()
    try:
        with path.open("rb") as opened:
            content = opened.read(LONGEST_SECRET + 1)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}", "name a file that you may read") from error
    return _decode(content, file)


def _decode(content: bytes, source: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        hint = "a secret is text; write binary data as base64: `base64 FILE | riseml secret set NAME`"
        raise UsageError(f"{source} is not UTF-8 text", hint) from error
