"""The sentences about what jobs wrote outside of OUTPUT_DIR, for the log and for `riseml show`."""

from __future__ import annotations

from collections.abc import Sequence

from riseml.base.amounts import format_bytes
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
    lines = [line for line in (_describe_kept(records), _describe_lost(records)) if line]
    troubles = dict.fromkeys(record.trouble for record in records if record.trouble)
    return [*lines, *(f"not every file could be kept: {trouble}" for trouble in troubles)]


def _describe_kept(records: Sequence[WrittenRecord]) -> str:
    files = sum(record.kept_files for record in records)
    if not files:
        return ""
    size = format_bytes(sum(record.kept_bytes for record in records))
    names = _join_names([name for record in records for name in record.kept_names])
    return f"{_count(files)} ({size}) {'is' if files == 1 else 'are'} kept in OUTPUT_DIR: {names}"


def _describe_lost(records: Sequence[WrittenRecord]) -> str:
    files = sum(record.lost_files for record in records)
    if not files:
        return ""
    size = format_bytes(sum(record.lost_bytes for record in records))
    names = _join_names([name for record in records for name in record.lost_names])
    more = " or more" if any(record.more for record in records) else ""
    line = f"{_count(files)} ({size}){more} {'was' if files == 1 else 'were'} not kept: {names}"
    advice = next((record.advice for record in records if record.advice), "")
    return f"{line}; to keep them, write {advice} below train in riseml.yml" if advice else line


def _count(files: int) -> str:
    return f"{files:,} new file{'' if files == 1 else 's'}"


def _join_names(names: list[str]) -> str:
    unique = list(dict.fromkeys(names))
    return ", ".join(unique[:MOST_NAMES]) + (", ..." if len(unique) > MOST_NAMES else "")
