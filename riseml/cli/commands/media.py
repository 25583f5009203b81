"""`media`: the pictures, sound, videos, texts and tables that the jobs of an experiment have written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from riseml.cli.arguments import choose_experiment_id
from riseml.cli.commands.options import IdArgument, JsonOption

if TYPE_CHECKING:
    from riseml.cli.context import CommandContext


def show_media(context: typer.Context, identity: IdArgument = None, *, json: JsonOption = False) -> None:
    """List pictures, sound, videos, texts and tables of an experiment.

    They are the files `media/NAME/STEP.png` (or jpg, gif, webp, svg, wav, mp3, ogg, mp4, webm, txt, md, html, csv,
    json) in OUTPUT_DIR, which jobs write themselves or by `riseml.report_image` and its like. The page shows them.
    """
    from riseml.cli.output.media_view import list_media

    command: CommandContext = context.obj
    with command.connect() as client:
        media = client.list_media(choose_experiment_id(command, client, identity))
    if json:
        command.printer.print_json(media)
    else:
        command.printer.print_lines(list_media(media, command.printer.style))
