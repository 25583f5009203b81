"""The records of a log as blocks: lines of one job that stand together are one piece of bytes, however many they are.

A record is one line, `<kind> <job> <attempt> <timestamp> <data>\\n`, where `kind` is 1, 2 or 3 for stdout, stderr and
the engine, or a, b, c when the frame's own line goes on in the next frame. Of a line that is too long the beginning is
kept: it ends, with a mark, in a record A, B or C. Each further frame of it leaves a record without data, which keeps
its place in the engine's log: x, y, z, or X, Y, Z for the one that ends the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from riseml.model import Frame, JobKey
from riseml.names import JobName

WHOLE, PART = b"0123", b"0abc"
CUT, REST, LAST = b"-ABC", b"-xyz", b"-XYZ"
LONGEST_LINE = 1 << 20  # bytes; what is longer is cut, with a mark
_LONGEST_WAIT = 2 * LONGEST_LINE  # bytes of a log behind the beginning of a line that goes on
NOBODY = "-"  # stands for the timestamp of a record that has none
_MARK = b" [riseml: line cut at 1 MiB]"


@dataclass(frozen=True, slots=True)
class ReadPosition:
    """Where a reader goes on in a log file."""

    offset: int = 0  # bytes from the beginning of the file; a record begins here
    lines_given: int = (
        0  # complete lines behind `offset` that the reader has already got; 0 unless a split line is open
    )


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a job's output; who reads on from `end` loses nothing and repeats nothing."""

    job: JobName
    at: str
    stream: int
    text: bytes
    end: ReadPosition


@dataclass(frozen=True, slots=True)
class LogBlock:
    """Lines of one job and one stream that follow each other.

    `data` is `<timestamp> <text>\\n` for each; their records begin at `start`, each with `head` bytes more than that.
    Who reads on from `end` loses nothing and repeats nothing.
    """

    job: JobName
    stream: int
    data: bytes
    start: int
    head: int
    end: ReadPosition

    @property
    def count(self) -> int:
        """How many lines it has; one at least."""
        return self.data.count(b"\n")

    @property
    def first_at(self) -> str:
        """The timestamp of its first line."""
        return self.data[: self.data.index(b" ")].decode()

    def times(self) -> Iterator[str]:
        """The timestamp of each line."""
        return (row.partition(b" ")[0].decode() for row in self.data.split(b"\n")[:-1])

    def lines(self) -> list[LogLine]:
        """Each line on its own."""
        found: list[LogLine] = []
        position = self.start
        for row in self.data.split(b"\n")[:-1]:
            position += self.head + len(row) + 1
            at, _, text = row.partition(b" ")
            found.append(LogLine(self.job, at.decode(), self.stream, text, ReadPosition(position)))
        found[-1] = replace(found[-1], end=self.end)
        return found

    def split(self, count: int) -> tuple[LogBlock, LogBlock]:
        """The first `count` lines, and the others; there are more than so many."""
        size = 0
        for _ in range(count):
            size = self.data.index(b"\n", size) + 1
        middle = self.start + size + count * self.head
        first = replace(self, data=self.data[:size], end=ReadPosition(middle))
        return first, replace(self, data=self.data[size:], start=middle)


def records(key: JobKey, frames: list[Frame], begun: dict[int, int]) -> bytes:
    """Frames as records. A carriage return stays; the engine splits at newlines, so that none is left inside.

    `begun` holds the bytes of the lines that go on, by their streams, and is brought up to date.
    """
    owner = f" {key.job} {key.attempt} ".encode()
    whole = [WHOLE[stream : stream + 1] + owner for stream in range(len(WHOLE))]
    pieces: list[bytes] = []
    for frame in frames:
        data = frame.data
        if data.find(b"\n") == len(data) - 1 and data and frame.stream not in begun:  # nearly always
            pieces += (whole[frame.stream], (frame.at or NOBODY).encode(), b" ", data)
            continue
        kinds, text = _continue_line(frame, begun)
        pieces += (kinds[frame.stream : frame.stream + 1], owner, (frame.at or NOBODY).encode(), b" ", text, b"\n")
    return b"".join(pieces)


def _continue_line(frame: Frame, begun: dict[int, int]) -> tuple[bytes, bytes]:
    """What a frame is to a line that had begun, or goes on: the kinds of its record, and what is kept of it."""
    ended = frame.data.endswith(b"\n")
    text = (frame.data[:-1] if ended else frame.data).replace(b"\n", b" ")
    before = begun.pop(frame.stream, 0)
    if not ended:
        begun[frame.stream] = before + len(text)
    if before > LONGEST_LINE:
        return (LAST if ended else REST), b""
    if before + len(text) > LONGEST_LINE:
        return (WHOLE if ended else CUT), text[: LONGEST_LINE - before] + _MARK
    return (WHOLE if ended else PART), text


def recall(kind: int, size: int, begun: dict[int, int]) -> None:
    """What `records` noted in `begun` as it made a record with `size` bytes of data."""
    stream = stream_of(kind)
    before = begun.pop(stream, 0)
    if kind in CUT or kind in REST:
        begun[stream] = LONGEST_LINE + 1
    elif kind not in WHOLE and kind not in LAST:
        begun[stream] = before + size


def parse(data: bytes, mark: ReadPosition) -> tuple[list[LogBlock], ReadPosition]:
    """The blocks of whole records that begin at the mark's offset, and where to read on.

    A line whose last record has not come yet is left for the next time, with all that comes behind its beginning.
    """
    found = _Found(mark.offset)
    position = 0
    while position < len(data):
        head = _head(data, position)
        kind = head[0]
        if not found.parts and kind in WHOLE:
            stop = _run(head).match(data, position).end()  # type: ignore[union-attr]  # the head is its first match
            found.add_run(head, data[position:stop])
        else:
            stop = data.index(b"\n", position) + 1
            if kind in REST or kind in LAST:
                found.position += stop - position
            else:
                found.add_record(head, data[position + len(head) : stop - 1])
        position = stop
    return found.give(mark.lines_given)


def _head(data: bytes, position: int) -> bytes:
    """`<kind> <job> <attempt> ` of the record that begins here."""
    return data[position : data.index(b" ", data.index(b" ", position + 2) + 1) + 1]


@lru_cache(maxsize=256)
def _run(head: bytes) -> re.Pattern[bytes]:
    """As many records with the same head as there are; possessive, since nothing could be found by going back."""
    return re.compile(b"(?:" + re.escape(head) + rb"[^\n]*+\n)++")


@dataclass(slots=True)
class _Part:
    """A line whose last record has not come yet: where it begins, its first timestamp, its pieces."""

    start: int
    at: bytes
    pieces: list[bytes] = field(default_factory=list)


class _Found:
    """What has been found up to `position`."""

    def __init__(self, offset: int) -> None:
        self.position = offset
        self.parts: dict[tuple[bytes, int], _Part] = {}
        self._blocks: list[LogBlock] = []
        self._behind: list[int] = []  # where the last record of each block ends

    def add_run(self, head: bytes, run: bytes) -> None:
        """Whole lines of one job, while no line is unfinished."""
        start = self.position
        self.position += len(run)
        lines = run[len(head) :].replace(b"\n" + head, b"\n")
        job = JobName(head.split(b" ")[1].decode())
        self._add(LogBlock(job, WHOLE.index(head[0]), lines, start, len(head), ReadPosition(self.position)))

    def add_record(self, head: bytes, rest: bytes) -> None:
        """A piece of a line, or a line among the pieces of another."""
        kind, job = head[0], head.split(b" ")[1]
        at, _, text = rest.partition(b" ")
        owner = (job, stream_of(kind))
        part = self.parts.setdefault(owner, _Part(self.position, at))
        part.pieces.append(text)
        self.position += len(head) + len(rest) + 1
        if kind in WHOLE or kind in CUT:
            del self.parts[owner]
            safe = self._safe()
            seen = 1 + sum(behind > safe for behind in self._behind) if safe < self.position else 0
            self._add(_joined(owner, part, ReadPosition(safe, seen)))

    def give(self, seen: int) -> tuple[list[LogBlock], ReadPosition]:
        """All that can be read on from, without the first `seen` lines."""
        safe = self._safe()
        if self.parts and safe <= self.position - _LONGEST_WAIT:  # one that never ends must not hold up the others
            for owner, part in self.parts.items():
                self._add(_joined(owner, part, ReadPosition(self.position)))
            safe = self.position
        ready = [block for block, behind in zip(self._blocks, self._behind, strict=True) if behind <= safe]
        while ready and seen:
            first = ready.pop(0)
            if first.count > seen:
                ready.insert(0, first.split(seen)[1])
            seen = max(0, seen - first.count)
        return ready, ReadPosition(safe, seen)

    def _add(self, block: LogBlock) -> None:
        self._blocks.append(block)
        self._behind.append(self.position)

    def _safe(self) -> int:
        """Where to read on so that no piece of an unfinished line is lost."""
        return min((part.start for part in self.parts.values()), default=self.position)


def _joined(owner: tuple[bytes, int], part: _Part, end: ReadPosition) -> LogBlock:
    text = b"".join(part.pieces)
    if len(text) > LONGEST_LINE:
        text = text[:LONGEST_LINE] + _MARK
    return LogBlock(JobName(owner[0].decode()), owner[1], part.at + b" " + text + b"\n", part.start, 0, end)


def stream_of(kind: int) -> int:
    """The stream of a record's kind."""
    return max(kinds.find(kind) for kinds in (WHOLE, PART, CUT, REST, LAST))
