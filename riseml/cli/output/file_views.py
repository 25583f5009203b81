"""Files as tables. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from riseml.cli.output.tables import Column, build_table
from riseml.cli.output.text import count_noun
from riseml.files.path_names import to_path
from riseml.files.project.messages import format_size
from riseml.job_programs.folder_paths import show_name

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.output.style import Style
    from riseml.job_programs.folder_paths import FileInfo

_LONG = (Column("KIND"), Column("BYTES", right=True), Column("MODIFIED"), Column("NAME"))
_USAGE = (Column("SIZE", right=True), Column("FILES", right=True), Column("PATH"))
_OUTPUTS = (
    Column("ID"),
    Column("PROJECT", shrinks=True),
    Column("ENDED"),
    Column("FILES", right=True),
    Column("SIZE", right=True),
)
_MARKS = {"folder": "/", "link": "@", "other": "|"}


def list_entries(entries: Sequence[FileInfo], style: Style, *, long: bool) -> list[str]:
    """Return the lines of `ls`: a name for each entry, or a table."""
    if not long:
        return [f"{show_name(entry.path)}{_MARKS.get(entry.kind, '')}" for entry in entries]
    rows = [[entry.kind, str(entry.size), _format_time(entry.mtime), _format_name(entry)] for entry in entries]
    return build_table(_LONG, rows, style) if rows else []


def list_usage(rows: Sequence[wire.DiskUsageView], style: Style) -> list[str]:
    """Return the table of `du`."""
    cells = [[format_size(row["size"]), str(row["files"]), show_name(to_path(row["path"]))] for row in rows]
    return build_table(_USAGE, cells, style) if cells else []


def list_outputs(outputs: Sequence[wire.OutputView], style: Style) -> list[str]:
    """Return a table of outputs that can be removed."""
    rows = [
        [
            output["experiment"],
            output["project"],
            output["ended_at"] or "-",
            str(output["files"]),
            format_size(output["size"]),
        ]
        for output in outputs
    ]
    return build_table(_OUTPUTS, rows, style) if rows else []


def summarise_outputs(outputs: Sequence[wire.OutputView], *, removed: bool = False) -> str:
    """Return how much can be removed, or was removed."""
    if not outputs:
        return "Nothing was removed." if removed else "There is no output to remove."
    size = format_size(sum(output["size"] for output in outputs))
    return f"{'Removed ' if removed else ''}{count_noun(len(outputs), 'output')}, {size}."


def summarise_copy(copied: wire.CopySummary) -> str:
    """Return what a copy has done, in one sentence."""
    links = f" and {count_noun(copied['links'], 'link')}" if copied["links"] else ""
    verb = "Would copy" if copied["dry_run"] else "Copied"
    parts = [f"{verb} {count_noun(copied['files'], 'file')}{links}, {format_size(copied['size'])}"]
    if copied["unchanged"]:
        parts.append(f"{count_noun(copied['unchanged'], 'file')} there already")
    return "; ".join(parts) + "."


def _format_name(entry: FileInfo) -> str:
    return show_name(entry.path) if entry.target is None else f"{show_name(entry.path)} -> {show_name(entry.target)}"


def _format_time(mtime: int) -> str:
    try:
        return f"{datetime.fromtimestamp(mtime // 10**9, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, OverflowError, OSError):
        return "-"
