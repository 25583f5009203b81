"""A saved output for people. `--json` prints all fields."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from riseml.cli.output.progress import describe_bytes
from riseml.cli.output.style import Style
from riseml.cli.output.tables import Column, build_table
from riseml.cli.output.text import clean_text, count_noun, format_age

if TYPE_CHECKING:
    from riseml import wire

_FILES = (Column("SIZE", right=True), Column("SHA256"), Column("PATH"))
_SHORT = 12  # characters of a checksum that are shown
_MOST_MISSING = 20


def describe_saved(identity: str, saved: wire.SavedSummary, now: datetime | None) -> str:
    """Return where an output is saved, and how much of it: `s3://runs/paul/mnist/4: 3 files, 1,024 bytes, 2m ago`.

    Without `now` the age is left out.
    """
    age = "" if now is None else f", {format_age(saved['saved_at'], now)} ago"
    present = (
        f"{count_noun(saved['files'], 'file')}, {saved['bytes']:,} bytes{age}" if saved["saved_at"] else "nothing yet"
    )
    trouble = f"; the last try failed: {saved['trouble']}" if saved["trouble"] else ""
    match saved["state"]:
        case "nothing":
            return "nothing: no job has run"
        case "saving":
            amount = f" ({describe_bytes(saved['done'], saved['total'], None)})" if saved["total"] else ""
            return f"being copied to {saved['place']}{amount}{trouble}"
        case "incomplete":
            missing = f"{count_noun(saved['missing'], 'file')} of the output" if saved["missing"] else "the output"
            verb = "is" if saved["missing"] == 1 or not saved["missing"] else "are"
            subject = f"{missing} {verb} not in {saved['place']}"
            return f"NOT complete: {subject}{trouble}; `riseml save {identity}` copies it again"
        case _:
            return f"{saved['place']}: {present}{trouble}"


def describe_restored(restored: wire.RestoredView) -> str:
    """Return the files with which the present attempt began."""
    if not restored["files"] and not restored["kept"]:
        return f"attempt {restored['attempt']} began with an empty output: nothing was saved before"
    kept_text = f", {count_noun(restored['kept'], 'file')} kept" if restored["kept"] else ""
    count = count_noun(restored["files"], "file")
    return f"attempt {restored['attempt']} began with {count} from the store ({restored['bytes']:,} bytes){kept_text}"


def list_saved(saved: wire.SavedView, now: datetime, style: Style) -> list[str]:
    """Return every saved file with its size and checksum, and the files that were left out."""
    lines = [clean_text(f"Saved: {describe_saved(saved['id'], saved, now)}")]
    if saved["restored"]:
        lines.append(clean_text(f"Restored: {describe_restored(saved['restored'])}"))
    if saved["manifest"]:
        rows = [[f"{file['size']:,}", file["sha256"][:_SHORT], file["path"]] for file in saved["manifest"]]
        lines += ["", *build_table(_FILES, rows, style)]
    missing = saved["missing_paths"][:_MOST_MISSING]
    more = len(saved["missing_paths"]) - len(missing)
    lines += [clean_text(f"not saved: {path}") for path in missing]
    lines += [f"not saved: {count_noun(more, 'other file')}"] if more else []
    return lines + [clean_text(f"left out: {file['path']}: {file['why']}") for file in saved["left_out"]]
