"""Options and arguments that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from riseml.cli.context import CommandContext


def _parse_path(text: str) -> Path:
    if not text:
        raise typer.BadParameter("it is empty; give the path of a riseml.yml")  # for example an unset shell variable
    return Path(text)


FileOption = Annotated[
    Path | None,
    typer.Option(
        "-f",
        "--file",
        "--config-file",
        metavar="FILE",
        parser=_parse_path,
        help="Use FILE instead of riseml.yml, in the same project.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
WatchOption = Annotated[bool, typer.Option("-w", "--watch", help="Refresh every 2 s.")]
LongLogOption = Annotated[
    bool,
    typer.Option("-l", "--long", help="Print times, reasons and exit codes in the log, and every job at the end."),
]
IdArgument = Annotated[
    str | None, typer.Argument(metavar="ID", show_default=False, help="Default: the project's last experiment.")
]
MessageOption = Annotated[
    str | None,
    typer.Option("-m", "--message", metavar="TEXT", help="Say what the run is for: its note, in Markdown."),
]
AfterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--after",
        metavar="ID",
        help="Start when ID has FINISHED, or with ID:any when it has ended in any way; repeatable.",
    ),
]
ParameterOption = Annotated[
    list[str] | None, typer.Option("-p", "--parameter", metavar="NAME=VALUE", help="Set a parameter; repeatable.")
]
SettingOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Change riseml.yml for this run: train.resources.gpus=2."),
]
OldDryRunOption = Annotated[bool, typer.Option("-n", hidden=True)]
OldFollowOption = Annotated[bool, typer.Option("-f", hidden=True)]
OldForceOption = Annotated[bool, typer.Option("-f", hidden=True)]


def accept_old_letter(command: CommandContext, letter: str, option: str, *, is_given: bool) -> bool:
    """Return whether the user gave an option by its old letter, after saying how it is written now."""
    if is_given:
        command.printer.warn(f"{letter} for {option} ends with the next release; write {option}")
    return is_given
