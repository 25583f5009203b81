"""`server init`, `server fingerprint` and `server unit`: make and run the server of a team."""

from __future__ import annotations

import getpass
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.errors import UsageError
from riseml.cli.commands.options import JsonOption
from riseml.cli.commands.server import find_own_home, server_app
from riseml.cli.context import CommandContext
from riseml.cli.help_text import add_subcommand

if TYPE_CHECKING:
    from riseml import wire

_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")


@add_subcommand(
    server_app,
    "init",
    "riseml server init --listen 0.0.0.0:8443",
    "riseml server init --listen 0.0.0.0:443 --cert cert.pem --key key.pem",
)
def init_server(
    context: typer.Context,
    *,
    listen: Annotated[str, typer.Option("--listen", metavar="HOST:PORT", help="Where the server answers over TLS.")],
    cert: Annotated[
        str | None,
        typer.Option("--cert", metavar="FILE", help="The server's certificate. Default: one of its own authority."),
    ] = None,
    key: Annotated[str | None, typer.Option("--key", metavar="FILE", help="The private key of --cert.")] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--name", metavar="HOST", help="A host name that it answers to; repeatable. Default: this machine's."
        ),
    ] = None,
    admin: Annotated[
        str | None, typer.Option("--admin", metavar="NAME", help="Name of the first admin. Default: your own.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Make RISEML_HOME the home of a server for a team.

    It writes server.yml, makes a certificate, and shows the key of the first admin, once.
    """
    from riseml.submission.server_process import run_home_program

    command: CommandContext = context.obj
    settings = find_own_home(command)
    if (cert is None) != (key is None):
        raise UsageError("--cert and --key belong together", "give both, or neither: the server has its own authority")
    files = [str(Path(command.folder, file).expanduser().absolute()) if file else "" for file in (cert, key)]
    words = ["init", listen, admin or _choose_admin(), *files, *(name or ())]
    team: wire.NewTeam = run_home_program(settings, *words)
    if json:
        command.printer.print_json(team)
        return
    url = team["url"]
    command.printer.print_lines(
        [
            f"{team['file']} makes this the home of a server for a team.",
            f"Listens at: {team['listen']}, as {', '.join(team['names'])}",
            f"Fingerprint: {team['fingerprint']}",
            f"Key of {team['admin']}, shown this once: {team['key']}",
            "",
            "Next:",
            "  riseml server unit            prints a systemd unit; or `riseml server start` starts the server now",
            f"  riseml login {url}    on your own machine; compare the fingerprint",
            "  riseml user create paul       makes the first user",
        ]
    )


@add_subcommand(server_app, "fingerprint", "riseml server fingerprint")
def print_fingerprint(context: typer.Context, *, json: JsonOption = False) -> None:
    """Print the fingerprint that users of a team's server compare when they log in.

    It is the SHA-256 of the public key of the server's authority, or of the last certificate of a chain of your own.
    """
    from riseml.submission.server_process import run_home_program

    command: CommandContext = context.obj
    fingerprint: str = run_home_program(find_own_home(command), "fingerprint")
    if json:
        command.printer.print_json({"fingerprint": fingerprint})
    else:
        command.printer.print_lines([fingerprint])


@add_subcommand(server_app, "unit", "riseml server unit")
def print_unit(context: typer.Context, *, json: JsonOption = False) -> None:
    """Print a systemd unit that runs the server of RISEML_HOME as root, as a standby.

    A team's server gives each job's files to the job's user, which takes root.
    """
    from riseml.cli.output.systemd_unit import UnitFacts, list_unit

    command: CommandContext = context.obj
    settings = find_own_home(command)
    home = settings.home
    if home.exists() and home.stat().st_uid != 0:
        raise UsageError(
            f"{home} is not a folder of root, and the server of a team runs as root",
            "make the home with `riseml server init` as root, for example in RISEML_HOME=/var/lib/riseml",
        )
    chosen = [(key, value) for key, value in command.environ.items() if key.startswith(("RISEML_", "DOCKER_"))]
    variables = [item for item in sorted(chosen) if item[0] not in ("RISEML_HOME", "RISEML_SERVER", "RISEML_API_KEY")]
    folders = [home, settings.output, settings.data, *([settings.local] if settings.local else [])]
    writable = sorted({str(folder.absolute()) for folder in folders})
    facts = UnitFacts(
        python=os.path.abspath(sys.executable),
        variables=[("RISEML_HOME", str(home.absolute())), *variables],
        writable=writable,
        private_tmp=not any(str(path).startswith("/tmp/") for path in (*writable, settings.socket)),
    )
    lines = list_unit(facts)
    if json:
        command.printer.print_json({"unit": "\n".join(lines) + "\n"})
    else:
        command.printer.print_lines(lines)


def _choose_admin() -> str:
    """Return the name of the first admin without --admin: that of the user, where a user of the server can have it."""
    name = getpass.getuser()
    return name if _NAME.fullmatch(name) else "admin"
