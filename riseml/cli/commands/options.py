"""Options and arguments that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def _parse_path(text: str) -> Path:
    if not text:
        raise typer.BadParameter("it is empty; give the path of a riseml.yml")  # for example an unset shell variable
    return Path(text)


FileOption = Annotated[
    Path | None,
    typer.Option(
        "-f", "--file", metavar="FILE", parser=_parse_path, help="Use FILE instead of riseml.yml, in the same project."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
IdArgument = Annotated[
    str | None, typer.Argument(metavar="ID", show_default=False, help="Default: the project's last experiment.")
]
ParameterOption = Annotated[
    list[str] | None, typer.Option("-p", "--parameter", metavar="NAME=VALUE", help="Set a parameter; repeatable.")
]
SettingOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Change riseml.yml for this run: train.resources.gpus=2."),
]
