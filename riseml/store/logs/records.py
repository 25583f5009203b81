"""The format of a log file: one record per frame of the engine, one line per record. Pure.

A record is `<code> <job> <attempt> <timestamp> <text>\n`. The code says which part of a line the record is, and which
stream printed it (`RecordKind.codes`). Existing stores hold this format, so that it can only be extended.

    1 worker.1 1 2026-08-31T07:23:46.000000001Z step 1 of 100
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from riseml.base.names import JobName
from riseml.model import Frame, JobKey
from riseml.store.logs.line_state import BETWEEN_LINES, LinePhase, LineState, RecordKind, cut_text

OpenLines = Mapping[int, LineState]
"""The lines of one job that are not between two lines, by their streams."""

NO_TIMESTAMP = "-"  # stands for the timestamp of a frame that has none
_TIMESTAMP = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,20}Z")
_ZEROS = bytes(4096)  # as many as a file system loses at once in a power cut
_STEP = len(_ZEROS) // 2
_LONGEST_HEAD = 300  # bytes
_KINDS = {code: (kind, stream) for kind in RecordKind for stream, code in enumerate(kind.codes)}


@dataclass(frozen=True, slots=True)
class RecordHead:
    """The beginning that all records of one kind, job and attempt share."""

    text: bytes  # `<code> <job> <attempt> `
    kind: RecordKind
    stream: int  # 1: stdout, 2: stderr, 3: the engine
    job: JobName
    attempt: int
    pattern: re.Pattern[bytes]  # matches successive records with this head


class RecordRun(NamedTuple):
    """Successive records with the same head. A tuple, because a log of many jobs has many."""

    head: RecordHead
    data: bytes  # the whole records
    has_zeros: bool = False  # the last one has as many zeros as a power cut leaves

    def rows(self) -> list[bytes]:
        """Return `<timestamp> <text>` of each record."""
        head = self.head.text
        return self.data[len(head) : -1].split(b"\n" + head)

    def text_size(self) -> int:
        """Return the bytes of text of all records, without their heads and timestamps."""
        return sum(len(row.partition(b" ")[2]) for row in self.rows())

    def stamps_from_last(self) -> Iterator[str]:
        """Yield the timestamp of each record, the last one first; empty for a record without a timestamp, and for one
        that is damaged.
        """
        head = self.head.text
        end = len(self.data) - 1
        while end > 0:
            start = self.data.rfind(b"\n", 0, end) + 1
            stamp = self.data[start + len(head) : end].partition(b" ")[0]
            yield stamp.decode() if _TIMESTAMP.fullmatch(stamp) else ""
            end = start - 1


@dataclass(frozen=True, slots=True)
class DamagedPart:
    """A part of a log file that holds no records."""

    size: int  # bytes


def encode_frames(key: JobKey, frames: list[Frame], before: OpenLines) -> tuple[bytes, OpenLines]:
    """Return frames as records, and the lines that are open after them.

    A carriage return stays. The engine splits its log at newlines, so that a frame has one at its end only.
    """
    lines = before
    owner = f" {key.job} {key.attempt} ".encode()
    whole = [RecordKind.END.codes[stream : stream + 1] + owner for stream in range(len(RecordKind.END.codes))]
    pieces: list[bytes] = []
    for at, stream, data in frames:
        if data.find(b"\n") == len(data) - 1 and data and stream not in lines:  # nearly always
            pieces += (whole[stream], (at or NO_TIMESTAMP).encode(), b" ", data)
            continue
        state = lines.get(stream, BETWEEN_LINES)
        kind, text = _cut_piece(state, data)
        lines = feed_line(lines, stream, kind, len(text))
        pieces += (kind.codes[stream : stream + 1], owner, (at or NO_TIMESTAMP).encode(), b" ", text, b"\n")
    return b"".join(pieces), lines


def measure_frames(key: JobKey, frames: list[Frame]) -> int:
    """Return the bytes that frames take as records: never too few, and at most one too many for each frame.

    A line that is longer than a log keeps counts with all of its bytes.
    """
    framing = len(f"1 {key.job} {key.attempt}  \n")
    return sum([len(frame.at) + len(frame.data) for frame in frames]) + framing * len(frames)


def _cut_piece(state: LineState, data: bytes) -> tuple[RecordKind, bytes]:
    """Return the kind of record that the next piece of a line becomes, and the text that is kept."""
    ends_line = data.endswith(b"\n")
    text = (data[:-1] if ends_line else data).replace(b"\n", b" ")
    kind = state.classify_piece(len(text), ends_line=ends_line)
    return kind, cut_text(text, state.size) if kind.has_text else b""


def feed_line(lines: OpenLines, stream: int, kind: RecordKind, size: int) -> OpenLines:
    """Return the open lines after a record of this stream with `size` bytes of text."""
    state = lines.get(stream, BETWEEN_LINES).feed(kind, size)
    other_lines = {other: line for other, line in lines.items() if other != stream}
    return other_lines if state.phase is LinePhase.BETWEEN else {**other_lines, stream: state}


def split_runs(data: bytes) -> Iterator[RecordRun | DamagedPart]:
    """Yield the records of a piece of a log file, in runs of one head, and what is not a record.

    Args:
        data: whole records. After a power cut or a damage of the disk, anything may be between them.
    """
    position = 0
    size = len(data)
    while position < size:
        try:
            attempt = data.index(b" ", position + 2, position + _LONGEST_HEAD) + 1
            head = _parse_head(data[position : data.index(b" ", attempt, position + _LONGEST_HEAD) + 1])
            records = head.pattern.match(data, position)[0]  # type: ignore[index]  # None: see below
        except (ValueError, KeyError, TypeError):
            end = _find_next_record(data, position)
            yield DamagedPart(end - position)
            position = end
            continue
        has_zeros = len(records) > len(_ZEROS) and b"\0" in records[::_STEP] and _ZEROS in records
        if has_zeros:
            records = records[: records.index(b"\n", records.index(_ZEROS)) + 1]
        yield RecordRun(head, records, has_zeros)
        position += len(records)


def _find_next_record(data: bytes, position: int) -> int:
    """Return where the next record begins behind a damage; the end of the data when there is none."""
    while (position := data.find(b"\n", position) + 1) and position < len(data):
        if _is_record(data, position):
            return position
    return len(data)


def _is_record(data: bytes, position: int) -> bool:
    """Return True when a record begins at a position."""
    try:
        attempt = data.index(b" ", position + 2, position + _LONGEST_HEAD) + 1
        _parse_head(data[position : data.index(b" ", attempt, position + _LONGEST_HEAD) + 1])
    except (ValueError, KeyError, TypeError):
        return False
    return True


def pick_records(data: bytes, key: JobKey) -> bytes:
    """Return the records of one attempt among whole records: fast where they are few among many."""
    pattern = rb"\n[^\n] " + re.escape(f"{key.job} {key.attempt} ".encode()) + rb"[^\n]*+"
    records = re.findall(pattern, b"\n" + data)
    return b"".join(records)[1:] + b"\n" if records else b""


def find_last_kind(data: bytes, key: JobKey, stream: int) -> RecordKind | None:
    """Return the kind of the last record of a stream of one attempt among whole records; None: there is none."""
    owner = f" {key.job} {key.attempt} ".encode()
    lines = b"\n" + data
    places = {lines.rfind(b"\n" + kind.codes[stream : stream + 1] + owner): kind for kind in RecordKind}
    return None if max(places) < 0 else places[max(places)]


@lru_cache(maxsize=256)
def _parse_head(text: bytes) -> RecordHead:
    code, job, attempt, _ = text.split(b" ")
    kind, stream = _KINDS[ord(code.decode())]
    if b"\n" in text or b"\0" in text:
        raise ValueError("a record has one line")
    # Possessive inside, where to go back could find nothing; never the group (see `report_lines`).
    pattern = re.compile(b"(?:" + re.escape(text) + rb"[^\n]*+\n)+")
    return RecordHead(text, kind, stream, JobName(job.decode()), int(attempt), pattern)
