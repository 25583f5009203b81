"""`checkout`: write the code of an experiment into a folder."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from riseml.cli.commands.options import JsonOption
from riseml.cli.context import CommandContext
from riseml.cli.output.text import clean_text, count_noun
from riseml.files.project.messages import format_path
from riseml.submission.capsule_source import find_capsule, open_archive, read_source


def check_out_code(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="ID|CAPSULE", help="An experiment, or the .riseml of an output.")],
    target: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that does not exist yet, or an empty one.")],
    *,
    json: JsonOption = False,
) -> None:
    """Write the project's files of an experiment into a folder.

    They are as they were when the experiment was submitted: `riseml checkout 4 ../as-it-was`, `riseml checkout
    ./output/.riseml code`. The files have the digest that the experiment names, or nothing is written.
    """
    from riseml.capsules.checkout import check_target, unpack_code

    command: CommandContext = context.obj
    folder = command.folder / target
    check_target(folder)
    place = find_capsule(command, source)
    with ExitStack() as stack:
        has_code = place is not None and place.find_archive() is not None
        client = None if has_code else stack.enter_context(command.connect())
        run_source = read_source(command, source, place, client)
        digest = run_source.capsule["code"]["digest"]
        archive = stack.enter_context(open_archive(command, run_source, client))
        count = unpack_code(archive, digest, folder)
    if json:
        command.printer.print_json({"folder": str(target), "digest": digest, "files": count})
        return
    line = f"Wrote {count_noun(count, 'file')} of {run_source.name} into {format_path(str(target))}."
    command.printer.print_lines([clean_text(line)])
