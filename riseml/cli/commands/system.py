"""`system`: the hosts, and leftovers on them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

import typer

from riseml import __version__
from riseml.base.errors import EngineError, UsageError
from riseml.cli.commands.options import JsonOption
from riseml.cli.commands.system_test import run_system_test
from riseml.cli.context import CommandContext
from riseml.cli.help_text import add_subcommand
from riseml.cli.output.text import count_noun

system_app = typer.Typer(help="Show and test the hosts; remove what is left over there.")


_DAYS = 30  # that --images are kept by default


@add_subcommand(system_app, "info", "riseml system info", "riseml system info --gpu")
def show_system(
    context: typer.Context,
    *,
    long: Annotated[bool, typer.Option("-l", "--long", help="Show the server and the engines too.")] = False,
    gpus: Annotated[
        bool, typer.Option("-g", "--gpu", "--gpus", help="Show the GPUs of the hosts, with serial numbers.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show the hosts with their cpus, memory and GPUs, their total, and the versions of riseml and the engines."""
    from riseml.cli.output.gpu_view import list_gpu_models, list_gpu_warnings
    from riseml.cli.output.host_views import list_host_warnings, list_hosts

    command: CommandContext = context.obj
    if gpus:
        with command.connect() as client:
            models = client.get_gpus()
        if json:
            command.printer.print_json(models)
        else:
            command.printer.print_lines(list_gpu_models(models, command.printer.style))
            for warning in list_gpu_warnings(models):
                command.printer.warn(warning)
        return
    with command.connect() as client:
        system = client.get_system()
    if json:
        command.printer.print_json(system)
        return
    command.printer.print_lines(list_hosts(system, __version__, command.printer.style, long=long))
    for warning in list_host_warnings(system["hosts"]):
        command.printer.warn(warning)


@add_subcommand(system_app, "clean", "riseml system clean", "riseml system clean --outputs --older 30d")
def clean_system(  # noqa: PLR0913  # one parameter for each option of the command
    context: typer.Context,
    *,
    yes: Annotated[
        bool, typer.Option("--yes", help="Remove it. Without --yes the command shows it; of outputs it asks.")
    ] = False,
    images: Annotated[
        bool, typer.Option("--images", help="Also environments, project files, capsules and data not used for --days.")
    ] = False,
    days: Annotated[
        int | None, typer.Option(metavar="N", min=0, max=36_500, help=f"Days that --images are kept. Default: {_DAYS}.")
    ] = None,
    foreign: Annotated[
        str, typer.Option(metavar="SERVER", help="Also what this other server left; be sure that it is gone.")
    ] = "",
    outputs: Annotated[
        bool, typer.Option("--outputs", help="Instead: outputs of experiments that have ended and are not kept.")
    ] = False,
    older: Annotated[str | None, typer.Option(metavar="AGE", help="Outputs that ended so long ago: 30d, 12h.")] = None,
    larger: Annotated[str | None, typer.Option(metavar="SIZE", help="Outputs of this size or more: 1G, 500M.")] = None,
    project: Annotated[str | None, typer.Option(metavar="NAME", help="Outputs of this project.")] = None,
    json: JsonOption = False,
) -> None:
    """Show, or remove, what no experiment owns.

    Containers, networks, folders, and project files that were never used: only what riseml made. `riseml system clean
    --outputs --older 30d --larger 1G` shows outputs, and asks before it removes them; `riseml keep 4` protects one.
    """
    from riseml.cli.commands.output_cleaning import OutputChoice, clean_outputs

    if days is not None and not images:
        raise UsageError("--days says how long --images are kept", "add --images")
    choice = OutputChoice(older, larger, project)
    if outputs or choice.is_given:
        if not outputs or images or foreign:
            raise UsageError("--older, --larger and --project choose outputs", "add --outputs, without other kinds")
        clean_outputs(context.obj, choice, yes=yes, json=json)
        return
    query = {"caches": str(images).lower(), "days": str(_DAYS if days is None else days), "foreign": foreign}
    _clean_leftovers(context.obj, query, yes=yes, json=json)


def _clean_leftovers(command: CommandContext, query: Mapping[str, str], *, yes: bool, json: bool) -> None:
    if not re.fullmatch("[0-9a-f]*", query["foreign"]):
        raise UsageError(
            f"--foreign {query['foreign']!r} is not a server",
            "`riseml system clean` names the other servers that it finds",
        )
    from riseml.cli.output.host_views import list_leftovers, summarise_leftovers

    with command.connect() as client:
        leftovers = client.remove_leftovers(query) if yes else client.list_leftovers(query)
    if json:
        command.printer.print_json(leftovers)
    else:
        command.printer.print_lines(list_leftovers(leftovers, command.printer.style))
        command.printer.say(*summarise_leftovers(leftovers, removed=yes))
        for host in leftovers["silent"]:
            command.printer.warn(f"host {host} does not answer; what is left over there is not listed")
    failed = [leftover for leftover in leftovers["leftovers"] if leftover["problem"] is not None]
    if failed:
        raise EngineError(
            f"{count_noun(len(failed), 'thing')} could not be removed: {failed[0]['name']}: {failed[0]['problem']}",
            "try again when no process uses it",
        )


add_subcommand(system_app, "test", "riseml system test", "riseml system test gpu1 --gpus 1")(run_system_test)
