"""`server`: the user's own server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.errors import Unreachable, UsageError
from riseml.base.settings import MOST_TAIL
from riseml.cli.commands.options import JsonOption, OldFollowOption, accept_old_letter
from riseml.cli.context import CommandContext
from riseml.cli.help_text import add_subcommand
from riseml.cli.output.text import count_noun

if TYPE_CHECKING:
    from riseml import wire
    from riseml.base.settings import Settings

server_app = typer.Typer(help="Start, stop or show your own server; back up or move its home.")


@add_subcommand(server_app, "status", "riseml server status")
def show_server(context: typer.Context, *, json: JsonOption = False) -> None:
    """Say whether a server runs, and which. Starts none."""
    from riseml.cli.output.host_views import list_server
    from riseml.client.exchange import Address
    from riseml.client.server_client import Client, read_address
    from riseml.submission.local_server import probe_server

    command: CommandContext = context.obj
    settings = command.settings()
    with Client(read_address(settings, command.environ)) as client:
        server = probe_server(client)
    standby = None
    if client.address.socket is not None and settings.standby_socket.exists():
        with Client(Address(settings.standby_socket)) as waiting:
            standby = probe_server(waiting)
    if server is None:
        server, standby = standby, None
    if server is None:
        where = settings.home if client.address.socket is not None else client.address
        raise Unreachable(f"no riseml server runs for {where}", "every other command starts it when needed")
    if json:
        command.printer.print_json(server)
    else:
        own_log = [f"Log: {settings.log}"] if client.address.socket is not None else []  # another's is on its machine
        command.printer.print_lines([*list_server(server), *own_log])
        if standby is not None:
            command.printer.print_lines(["", *list_server(standby)])


@add_subcommand(server_app, "start", "riseml server start")
def start_server(context: typer.Context, *, json: JsonOption = False) -> None:
    """Start your server now.

    Every other command starts it when needed.
    """
    from riseml.cli.output.host_views import list_server

    command: CommandContext = context.obj
    with command.connect() as client:
        server = client.get_server()
    if json:
        command.printer.print_json(server)
    else:
        command.printer.print_lines(list_server(server))


@add_subcommand(server_app, "run", "riseml server run", "riseml server run --standby")
def run_server(
    context: typer.Context,
    *,
    standby: Annotated[
        bool,
        typer.Option("--standby", help="Wait while another server serves, and take its place when it is gone."),
    ] = False,
) -> None:
    """Run your server in this terminal, or as the program of a unit of systemd.

    It does not end when it is idle.
    Two servers of one RISEML_HOME with --standby and the same RISEML_STORE take each other's place.
    """
    from riseml.submission.server_process import become_server

    command: CommandContext = context.obj
    become_server(find_own_home(command), standby=standby)


@add_subcommand(server_app, "stop", "riseml server stop")
def stop_server(context: typer.Context, *, json: JsonOption = False) -> None:
    """Stop your server. Training goes on; the next command starts the server again."""
    from riseml.client.server_client import Client, read_address
    from riseml.submission import local_server

    command: CommandContext = context.obj
    settings = command.settings()
    with Client(read_address(settings, command.environ)) as client:
        if client.address.socket is None:
            raise UsageError(
                f"{client.address} is not your own server, so this command cannot stop it",
                "add `--server local`, or unset RISEML_SERVER, to stop your own server",
            )
        stopped = local_server.stop_server(client, settings)
    active = 0 if stopped is None else stopped["active"]
    # a server of an earlier version does not count them
    searches = 0 if stopped is None else stopped.get("searches", 0)
    if json:
        pid = None if stopped is None else stopped["pid"]
        command.printer.print_json({"stopped": stopped is not None, "pid": pid, "active": active, "searches": searches})
    elif stopped is None:
        command.printer.print_lines([f"No riseml server runs for {settings.home}."])
    else:
        goes_on = f" {count_noun(active, 'experiment')} {'goes' if active == 1 else 'go'} on without it."
        message = f"Stopped the riseml server (process {stopped['pid']}).{goes_on if active else ''}"
        command.printer.print_lines([message, *([_describe_searches(searches)] if searches else [])])


def _describe_searches(count: int) -> str:
    who = "A search makes" if count == 1 else f"{count} searches make"
    return f"{who} no further trial and stops none until a server runs again: any riseml command starts it."


@add_subcommand(server_app, "rotate-key", "riseml server rotate-key")
def rotate_key(context: typer.Context, *, json: JsonOption = False) -> None:
    """Replace the key that seals secrets and passed variables in the store, and seal them with the new one.

    The key is in variables.key of RISEML_HOME, or where secrets_key of server.yml says. Do this when a backup of it may
    be in wrong hands.
    """
    command: CommandContext = context.obj
    with command.connect() as client:
        client.rotate_key()
    if json:
        command.printer.print_json({"rotated": True})
    else:
        command.printer.print_lines(
            ["The secrets and variables in the store are sealed with a new key. No copy of the former key opens them."]
        )


@add_subcommand(server_app, "move", "riseml server move")
def move_home(context: typer.Context, *, json: JsonOption = False) -> None:
    """Make RISEML_HOME, which was copied, restored or moved, the owner of its experiments.

    A copy of a home touches nothing until this command decides that the copy lives on.
    Where the former home is on this machine, it says from then on that it is a copy.
    """
    from riseml.submission.server_process import run_home_program

    command: CommandContext = context.obj
    moved: wire.MovedHome = run_home_program(find_own_home(command), "move")
    if json:
        command.printer.print_json(moved)
        return
    home = moved["home"]
    former = moved["former"]
    if former is None:
        command.printer.print_lines([f"{home} is the home of its experiments already."])
        return
    where = former if moved["retired"] or not moved["former_host"] else f"{former} on {moved['former_host']}"
    lines = [f"The experiments of {where} belong to {home} from now on."]
    if moved["retired"]:
        lines.append(f"{former} is a copy now: its commands say so, and touch nothing.")
    elif former != home:
        lines.append("Should the former home still be somewhere, use it no more: both would act on the same jobs.")
    if moved["environments_removed"]:
        lines.append(
            "The environments of the copy named paths of the former home; the next experiments make them again."
        )
    command.printer.print_lines(lines)


@add_subcommand(server_app, "backup", "riseml server backup riseml-home.tar.gz")
def back_up_home(
    context: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The new file; only you can read it.")],
    *,
    json: JsonOption = False,
) -> None:
    """Write RISEML_HOME into one file, as it is at one moment. The server and all jobs go on.

    It has the store, the logs, the projects, the capsules, the settings and the keys.
    Outputs, data, environments and the folders of jobs that are processes are not in it.
    """
    from riseml.files.project.messages import format_size
    from riseml.submission.server_process import run_home_program

    command: CommandContext = context.obj
    path = str((command.folder / file).absolute())
    backup: wire.BackedUpHome = run_home_program(find_own_home(command), "backup", path)
    if json:
        command.printer.print_json(backup)
        return
    lines = [
        f"Backed up {backup['home']} in {backup['file']}: {format_size(backup['size'])}. It has keys: keep it private."
    ]
    if backup["left_out"]:
        lines.append(f"Not in it: {', '.join(backup['left_out'])}.")
    if not backup["store"]:
        lines.append("The store is a PostgreSQL and not in it: back it up with pg_dump before the home, not after it.")
    command.printer.print_lines(lines)


@add_subcommand(server_app, "restore", "riseml server restore riseml-home.tar.gz")
def restore_home(
    context: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file of `riseml server backup`.")],
    *,
    json: JsonOption = False,
) -> None:
    """Make RISEML_HOME, which must be empty, from a backup.

    In the place of the home that it is a backup of, it is that home.
    Elsewhere it is a copy, which touches nothing until `riseml server move`.
    """
    from riseml.submission.server_process import run_home_program

    command: CommandContext = context.obj
    path = str((command.folder / file).absolute())
    restored: wire.RestoredHome = run_home_program(find_own_home(command), "restore", path)
    if json:
        command.printer.print_json(restored)
        return
    former = f"{restored['former']} on {restored['former_host']}"
    lines = [f"Restored {restored['home']}, a backup of {former}."]
    if not restored["store"]:
        lines.append("Its store is a PostgreSQL: restore that, too, and set RISEML_STORE.")
    if not restored["owner"]:
        lines.append(
            "It is a copy: its commands touch nothing until `riseml server move` says that it lives on instead of"
            f" {restored['former']}."
        )
    command.printer.print_lines(lines)


def find_own_home(command: CommandContext) -> Settings:
    """Return the settings of the user's own server.

    Raises:
        UsageError: commands go to another one.
    """
    from riseml.client.server_client import read_address

    settings = command.settings()
    address = read_address(settings, command.environ)
    if address.socket is None:
        raise UsageError(
            f"{address} is not your own server, so this command cannot reach its home",
            "add `--server local`, or unset RISEML_SERVER, to work on your own home",
        )
    return settings


@add_subcommand(server_app, "logs", "riseml server logs --tail 50", "riseml server logs --follow")
def print_server_log(
    context: typer.Context,
    *,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for more, until Ctrl-C.")] = False,
    tail: Annotated[
        int | None,
        typer.Option(
            "-n",
            "--tail",
            min=0,
            max=MOST_TAIL,
            metavar="N",
            show_default=False,
            help="Begin with the last N lines. Default: all lines that are kept.",
        ),
    ] = None,
    json: JsonOption = False,
    old_follow: OldFollowOption = False,
) -> None:
    """Print what your server decided and did.

    Each decision and each action is one line, with the experiment, the job, the host and the reason.
    The command reads the log from its files, so no server has to run.
    RISEML_LOG_FORMAT=json makes a server write JSON lines.
    """
    from riseml.cli.server_log import ServerLogReader
    from riseml.client.server_client import read_address

    command: CommandContext = context.obj
    follow = accept_old_letter(command, "-f", "--follow", is_given=old_follow) or follow
    settings = command.settings()
    address = read_address(settings, command.environ)
    if address.socket is None:
        raise UsageError(
            f"{address} is not your own server, so this command cannot read its log",
            "add `--server local`, or unset RISEML_SERVER, to read the log of your own server",
        )
    with ServerLogReader(settings.log, settings.former_log) as reader:
        _print_log_lines(command, reader.read_last_lines(tail), json=json)
        if follow:
            for lines in reader.follow_lines(command.wait):
                _print_log_lines(command, lines, json=json)


def _print_log_lines(command: CommandContext, lines: list[str], *, json: bool) -> None:
    from riseml.cli.output.text import clean_text
    from riseml.cli.server_log import parse_log_line

    if json:
        for line in lines:
            command.printer.print_json(parse_log_line(line))
    else:
        command.printer.print_lines([clean_text(line) for line in lines])
