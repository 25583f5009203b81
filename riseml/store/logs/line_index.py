"""Lines of a log by their numbers: a sparse index that grows with the log, so that any page of a long log is quick.

The file of a log knows offsets, not numbers. An index has the position of every thousandth line or so, and counts on
from where it stopped: the first read of a log of 1,000,000 lines takes about a second, a page of it milliseconds.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import field

from riseml.base.names import CanonicalId
from riseml.base.records import dataclass
from riseml.store.logs.blocks import LogBlock, OutputLine
from riseml.store.logs.levels import LogLevel, has_level
from riseml.store.logs.log_store import LogStore
from riseml.store.logs.read_position import ReadPosition

_STEP = 1000  # lines between two marks, at least
_MOST_INDEXES = 32  # logs whose index is kept
_MOST_BYTES = 2 * 2**20  # bytes of the lines of one answer
_MOST_SEARCHED = 64 * 2**20  # bytes of the lines that one search looks at


@dataclass(frozen=True, slots=True)
class Selection:
    """The lines of a log that a reader wants."""

    experiment: int
    canonical_id: CanonicalId  # names the jobs whose lines count
    level: LogLevel | None = None  # None: lines of all levels, and those without one

    def count(self, block: LogBlock) -> int:
        """Return how many lines of a block are wanted."""
        if self.level is None:
            return block.count
        rows = block.data.split(b"\n")[:-1]
        return sum(has_level(row.partition(b" ")[2], self.level) for row in rows)

    def choose(self, block: LogBlock) -> list[tuple[int, OutputLine]]:
        """Return the wanted lines of a block, each with its place among all lines of the block."""
        level = self.level
        return [(at, line) for at, line in enumerate(block.lines()) if level is None or has_level(line.text, level)]


@dataclass(frozen=True, slots=True)
class NumberedOutput:
    """A line with its numbers; 0 is the first one."""

    number: int  # among the lines that are wanted
    whole: int  # among the lines of all levels
    line: OutputLine


@dataclass(slots=True)
class _LineIndex:
    """The marks of one selection."""

    numbers: list[int] = field(default_factory=lambda: [0])  # numbers of the wanted line behind each mark
    wholes: list[int] = field(default_factory=lambda: [0])  # numbers of the line of any level behind each mark
    positions: list[ReadPosition] = field(default_factory=lambda: [ReadPosition()])
    total: int = 0  # wanted lines before `end`
    whole: int = 0  # lines of any level before `end`
    end: ReadPosition = field(default_factory=ReadPosition)  # up to where they were counted
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, slots=True)
class _Mark:
    """Where a read begins."""

    total: int  # wanted lines of the log
    number: int  # number of the wanted line after the mark
    whole: int  # number of the line of any level after the mark
    position: ReadPosition


class LineIndexes:
    """The indexes of the logs that were read last. Several threads use it.

    Args:
        logs: the logs.
    """

    def __init__(self, logs: LogStore) -> None:
        self._logs = logs
        self._guard = threading.Lock()
        self._indexes: OrderedDict[tuple[int, str, LogLevel | None], _LineIndex] = OrderedDict()

    def read_page(self, selection: Selection, first: int, count: int) -> tuple[int, list[NumberedOutput]]:
        """Return how many lines there are, and some of them with their numbers.

        Args:
            selection: which lines count.
            first: number of the first line; below 0 it counts from the end.
            count: of lines, at most; long lines make an answer shorter.
        """
        mark = self._find_mark(selection, first)
        total = mark.total
        begin = mark.number
        whole = mark.whole
        first = max(0, total + first) if first < 0 else first
        outputs: list[NumberedOutput] = []
        size = 0
        for block in self._read_blocks(selection, mark.position):
            chosen = selection.count(block)
            if begin + chosen > first:
                for number, (at, line) in enumerate(selection.choose(block), begin):
                    if number < first:
                        continue
                    if len(outputs) == count or size > _MOST_BYTES:
                        return total, outputs
                    outputs.append(NumberedOutput(number, whole + at, line))
                    size += len(line.text)
            begin += chosen
            whole += block.count
        return max(total, begin), outputs

    def search(self, selection: Selection, text: str, first: int, most: int) -> tuple[int, list[int], int | None]:
        """Return how many lines there are, the numbers of lines that contain a text, and where to search on.

        Upper and lower case of ASCII letters are alike. `selection` and `first` are as for `read_page`.
        """
        mark = self._find_mark(selection, first)
        total = mark.total
        begin = mark.number
        sought = text.encode().lower()
        matches = list[int]()
        searched = 0
        for block in self._read_blocks(selection, mark.position):
            if sought in block.data.lower():
                for number, (_, line) in enumerate(selection.choose(block), begin):
                    if number >= first and sought in line.text.lower():
                        matches.append(number)
            begin += selection.count(block)
            searched += len(block.data)
            if len(matches) >= most or searched > _MOST_SEARCHED:
                page = matches[:most]
                return total, page, page[-1] + 1 if len(page) < len(matches) else begin
        return max(total, begin), matches, None

    def _find_mark(self, selection: Selection, first: int) -> _Mark:
        """Count the lines that are new, and return the last mark before a line with its number."""
        index = self._open_index(selection)
        with index.lock:
            if index.end.offset > self._logs.log_size(selection.experiment):
                index.numbers[1:] = []
                index.wholes[1:] = []
                index.positions[1:] = []
                index.total = 0
                index.whole = 0
                index.end = ReadPosition()
            self._count_on(index, selection)
            at = bisect_right(index.numbers, max(0, index.total + first if first < 0 else first)) - 1
            return _Mark(index.total, index.numbers[at], index.wholes[at], index.positions[at])

    def _count_on(self, index: _LineIndex, selection: Selection) -> None:
        while True:
            blocks, end = self._logs.read_blocks(selection.experiment, index.end)
            if end == index.end:
                return
            if index.whole >= index.wholes[-1] + _STEP:
                index.numbers.append(index.total)
                index.wholes.append(index.whole)
                index.positions.append(index.end)
            own = [block for block in blocks if selection.canonical_id.names(block.job)]
            index.total += sum(selection.count(block) for block in own)
            index.whole += sum(block.count for block in own)
            index.end = end

    def _open_index(self, selection: Selection) -> _LineIndex:
        key = (selection.experiment, selection.canonical_id.job or "", selection.level)
        with self._guard:
            index = self._indexes.pop(key, None) or _LineIndex()
            self._indexes[key] = index
            while len(self._indexes) > _MOST_INDEXES:
                self._indexes.popitem(last=False)
        return index

    def _read_blocks(self, selection: Selection, position: ReadPosition) -> Iterator[LogBlock]:
        while True:
            blocks, end = self._logs.read_blocks(selection.experiment, position)
            yield from (block for block in blocks if selection.canonical_id.names(block.job))
            if end == position:
                return
            position = end
