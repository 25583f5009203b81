"""`cp`: files out of a running job, and into one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.cli.commands.jobs import choose_job
from riseml.cli.commands.options import JsonOption
from riseml.cli.output.text import clean_text
from riseml.errors import UsageError

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.context import CommandContext

_JOB_PATH = re.compile(r"([^:/]+):(.+)", re.DOTALL)


def copy_files(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="SOURCE", show_default=False, help="4.master:/output/x, or ./x")],
    target: Annotated[str, typer.Argument(metavar="TARGET", show_default=False, help="., or 4.master:/output/")],
    *,
    json: JsonOption = False,
) -> None:
    """Copy a file or folder out of a running job, or into one.

    `riseml cp 4.master:/output/x .` and back: `riseml cp ./x 4.master:/output/`. One of both is in a job. Paths that
    do not begin with / are below the job's working directory. A file is replaced, a folder never.
    """
    from riseml.cli.job_copy import JobPath, copy_in, copy_out

    command: CommandContext = context.obj
    from_job, to_job = _JOB_PATH.fullmatch(source), _JOB_PATH.fullmatch(target)
    if (from_job is None) is (to_job is None):
        raise UsageError(
            "one of both paths must be in a job", "write `riseml cp 4.master:/output/x .`, or the other way"
        )
    with command.connect() as client:
        if from_job is not None:
            place = JobPath(choose_job(command, client, from_job[1]), from_job[2])
            shown: wire.CopyView = {
                "from": str(place),
                "to": str(copy_out(client.address, place, command.folder / target)),
            }
        elif to_job is not None:
            place = JobPath(choose_job(command, client, to_job[1]), to_job[2])
            shown = {"from": source, "to": str(copy_in(client.address, command.folder / Path(source), place))}
    if json:
        command.printer.print_json(shown)
    else:
        command.printer.print_lines([clean_text(f"{shown['from']} -> {shown['to']}")])
