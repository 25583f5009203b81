"""The sentences about what jobs wrote outside of OUTPUT_DIR, for the log and for `riseml show`."""

from __future__ import annotations

from collections.abc import Sequence

from riseml.amounts import format_bytes
from riseml.store.logs.blocks import OutputLine
from riseml.store.written_files import WrittenRecord

MOST_NAMES = 5
"""Names that one sentence has."""

STREAM = 3
"""The stream of lines that no job has printed; in the log, these sentences are in it."""

_BEGINNING = b"riseml: "


def list_log_lines(record: WrittenRecord) -> list[bytes]:
    """Return the lines of the log of a job about what it wrote."""
    return [_BEGINNING + sentence.encode() for sentence in describe_written([record])]


def is_about_files(line: OutputLine) -> bool:
    """Return True for a line of `list_log_lines`: the job has not printed it."""
    return line.stream == STREAM and line.text.startswith(_BEGINNING)


def describe_written(records: Sequence[WrittenRecord]) -> list[str]:
    """Return the sentences about what jobs wrote outside of OUTPUT_DIR, for people; none when they wrote nothing."""
    lines: list[str] = []
    kept, lost = sum(one.kept_files for one in records), sum(one.lost_files for one in records)
    if kept:
        size = format_bytes(sum(one.kept_bytes for one in records))
        names = _join_names([name for one in records for name in one.kept_names])
        lines.append(f"{_count(kept)} ({size}) {'is' if kept == 1 else 'are'} kept in OUTPUT_DIR: {names}")
    if lost:
        size = format_bytes(sum(one.lost_bytes for one in records))
        names = _join_names([name for one in records for name in one.lost_names])
        more = " or more" if any(one.more for one in records) else ""
        line = f"{_count(lost)} ({size}){more} {'was' if lost == 1 else 'were'} not kept: {names}"
        advice = next((one.advice for one in records if one.advice), "")
        lines.append(f"{line}; to keep them, write {advice} below train in riseml.yml" if advice else line)
    troubles = dict.fromkeys(one.trouble for one in records if one.trouble)
    return [*lines, *(f"not every file could be kept: {trouble}" for trouble in troubles)]


def _count(files: int) -> str:
    return f"{files:,} new file{'' if files == 1 else 's'}"


def _join_names(names: list[str]) -> str:
    unique = list(dict.fromkeys(names))
    return ", ".join(unique[:MOST_NAMES]) + (", ..." if len(unique) > MOST_NAMES else "")
