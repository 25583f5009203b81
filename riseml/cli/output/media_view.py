"""The media of an experiment for people. `--json` prints all fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from riseml.cli.output.style import Style
from riseml.cli.output.tables import Column, build_table
from riseml.cli.output.text import clean_text, count_noun

if TYPE_CHECKING:
    from riseml import wire

_COLUMNS = (
    Column("NAME", folds=True),
    Column("KIND"),
    Column("FILES", right=True),
    Column("STEPS", right=True),
    Column("SIZE", right=True),
)


def list_media(view: wire.MediaView, style: Style) -> list[str]:
    """Return a line for each name, and how to copy them."""
    identity = view["id"]
    if view["media"]:
        lines = build_table(_COLUMNS, [_make_row(series) for series in view["media"]], style)
        lines += ["", f"`riseml cp output://{identity}/media .` copies them; the page shows them"]
    else:
        lines = [
            f"Experiment {identity} has no media: `riseml.report_image(name, step, image)` in its code reports some"
        ]
    if view["left_out"]:
        count = count_noun(view["left_out"], "file")
        lines.append(f"{count} below media left out: the names are not NAME/STEP.png, or have another ending")
    if view["more"]:
        lines.append(f"There are more: `riseml ls -r output://{identity}/media` lists all")
    return [clean_text(line) for line in lines]


def _make_row(series: wire.MediaSeries) -> list[str]:
    items = series["items"]
    steps = [item["step"] for item in items] or [0]
    span = f"{steps[0]:,}" if steps[0] == steps[-1] else f"{steps[0]:,} to {steps[-1]:,}"
    return [series["name"], series["kind"], f"{len(items):,}", span, f"{sum(item['size'] for item in items):,}"]
