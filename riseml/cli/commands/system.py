"""`server` and `system`: the machinery itself."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from riseml.cli.commands.files import JsonOption
from riseml.cli.output.text import plural
from riseml.cli.tools import Tools
from riseml.errors import EngineError, Unreachable, UsageError

server = typer.Typer(help="Start, stop or look at your own server.")
system = typer.Typer(help="Show and test the hosts; clean what is left over there.")


@server.command("status")
def server_status(context: typer.Context, *, json: JsonOption = False) -> None:
    """Say whether a server runs, and which. Starts none."""
    from riseml.cli.local import probe
    from riseml.cli.output.views import server_lines
    from riseml.client import Client, read_address

    tools: Tools = context.obj
    settings = tools.settings()
    with Client(read_address(settings, tools.environ)) as client:
        found = probe(client)
    if found is None:
        where = settings.home if client.address.socket is not None else client.address
        raise Unreachable(f"no riseml server runs for {where}", "every other command starts it when it is needed")
    if json:
        tools.render.json(found)
    else:
        tools.render.print(*server_lines(found), f"Log: {settings.log}")


@server.command("start")
def start_server(context: typer.Context, *, json: JsonOption = False) -> None:
    """Start your server now.

    Any other command does it when it is needed.
    """
    from riseml.cli.output.views import server_lines

    tools: Tools = context.obj
    with tools.connect() as client:
        found = client.server()
    if json:
        tools.render.json(found)
    else:
        tools.render.print(*server_lines(found))


@server.command("stop")
def stop_server(context: typer.Context, *, json: JsonOption = False) -> None:
    """Stop your server. Training goes on; the next command starts the server again."""
    from riseml.cli.local import stop
    from riseml.client import Client, read_address

    tools: Tools = context.obj
    settings = tools.settings()
    with Client(read_address(settings, tools.environ)) as client:
        if client.address.socket is None:
            raise UsageError(f"{client.address} is not your own server", "unset RISEML_SERVER to stop the one that is")
        stopped = stop(client, settings)
    active = 0 if stopped is None else stopped["active"]
    if json:
        pid = None if stopped is None else stopped["pid"]
        tools.render.json({"stopped": stopped is not None, "pid": pid, "active": active})
    elif stopped is None:
        tools.render.print(f"No riseml server runs for {settings.home}.")
    else:
        goes_on = f" {plural(active, 'experiment')} {'goes' if active == 1 else 'go'} on without it." if active else ""
        tools.render.print(f"Stopped the riseml server (process {stopped['pid']}).{goes_on}")


@system.command("info")
def system_info(
    context: typer.Context,
    *,
    long: Annotated[bool, typer.Option("-l", "--long", help="Show the server and the engines too.")] = False,
    json: JsonOption = False,
) -> None:
    """Show the hosts with their cpus, memory and GPUs."""
    from riseml.cli.output.views import print_system

    tools: Tools = context.obj
    with tools.connect() as client:
        found = client.system()
    if json:
        tools.render.json(found)
    else:
        print_system(tools.render, found, long=long)


@system.command("clean")
def clean(  # noqa: PLR0913  # the command has so many options
    context: typer.Context,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Remove it. Without this, it is only shown.")] = False,
    images: Annotated[
        bool, typer.Option("--images", help="Also environments and project files that were not used for --days.")
    ] = False,
    days: Annotated[int, typer.Option(metavar="N", min=0, max=36_500, help="How long --images are kept.")] = 30,
    foreign: Annotated[
        str, typer.Option(metavar="SERVER", help="Also what this other server left; be sure that it is gone.")
    ] = "",
    json: JsonOption = False,
) -> None:
    """Show, or remove, what no experiment owns.

    Containers, networks, folders, and project files that were never used. Only what riseml made is looked at.
    """
    from riseml.cli.output.views import print_leftovers

    tools: Tools = context.obj
    if not re.fullmatch("[0-9a-f]*", foreign):
        raise UsageError(f"--foreign {foreign!r} is no server", "`riseml system clean` names the others that it finds")
    asked = {"caches": str(images).lower(), "days": str(days), "foreign": foreign}
    with tools.connect() as client:
        found = client.leftovers(asked, remove=yes)
    if json:
        tools.render.json(found)
    else:
        print_leftovers(tools.render, found, removed=yes)
    failed = [one for one in found["leftovers"] if one["problem"] is not None]
    if failed:
        raise EngineError(
            f"{plural(len(failed), 'thing')} could not be removed: {failed[0]['name']}: {failed[0]['problem']}",
            "try again when nothing uses it",
        )
