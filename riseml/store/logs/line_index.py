"""Lines of a log by their numbers: a sparse index that grows with the log, so that any page of a long log is quick.

The file of a log knows offsets, not numbers. An index has the position of every thousandth line or so, and counts on
from where it stopped: the first read of a log of 1,000,000 lines takes about a second, a page of it milliseconds.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from riseml.names import CanonicalId
from riseml.store.logs.blocks import LogBlock, OutputLine, ReadPosition
from riseml.store.logs.log_store import LogStore

_STEP = 1000  # lines between two marks, at least
_MOST_INDEXES = 32  # logs whose index is kept
_MOST_BYTES = 2 * 2**20  # of the lines of one answer
_MOST_SEARCHED = 64 * 2**20  # bytes of the lines that one search looks at


@dataclass(slots=True)
class _LineIndex:
    """The marks of one log."""

    numbers: list[int] = field(default_factory=lambda: [0])  # of the line behind each mark
    positions: list[ReadPosition] = field(default_factory=lambda: [ReadPosition()])
    total: int = 0  # lines before `end`
    end: ReadPosition = field(default_factory=ReadPosition)  # up to where they were counted
    lock: threading.Lock = field(default_factory=threading.Lock)


class LineIndexes:
    """The indexes of the logs that were read last. Several threads use it.

    Args:
        logs: the logs.
    """

    def __init__(self, logs: LogStore) -> None:
        self._logs = logs
        self._guard = threading.Lock()
        self._indexes: OrderedDict[tuple[int, str], _LineIndex] = OrderedDict()

    def read_page(
        self, experiment: int, wanted: CanonicalId, first: int, count: int
    ) -> tuple[int, list[tuple[int, OutputLine]]]:
        """Return how many lines there are, and some of them with their numbers.

        Args:
            experiment: whose log it is.
            wanted: names the jobs whose lines count.
            first: number of the first line; below 0 it counts from the end.
            count: of lines, at most; long lines make an answer shorter.
        """
        total, begin, position = self._find(experiment, wanted, first)
        first = max(0, total + first) if first < 0 else first
        found: list[tuple[int, OutputLine]] = []
        size = 0
        for block in self._read_blocks(experiment, wanted, position):
            if begin + block.count > first:
                for line in block.lines()[max(0, first - begin) :]:
                    if len(found) == count or size > _MOST_BYTES:
                        return total, found
                    found.append((first + len(found), line))
                    size += len(line.text)
            begin += block.count
        return max(total, begin), found

    def search(
        self, experiment: int, wanted: CanonicalId, text: str, first: int, most: int
    ) -> tuple[int, list[int], int | None]:
        """Return how many lines there are, the numbers of lines that contain a text, and where to search on.

        Upper and lower case of ASCII letters are alike. `first` and below are as for `read_page`.
        """
        total, begin, position = self._find(experiment, wanted, first)
        sought, matches, seen = text.encode().lower(), list[int](), 0
        for block in self._read_blocks(experiment, wanted, position):
            if sought in block.data.lower():
                for number, line in enumerate(block.lines(), begin):
                    if number >= first and sought in line.text.lower():
                        matches.append(number)
            begin, seen = begin + block.count, seen + len(block.data)
            if len(matches) >= most or seen > _MOST_SEARCHED:
                kept = matches[:most]
                return total, kept, kept[-1] + 1 if len(kept) < len(matches) else begin
        return max(total, begin), matches, None

    def _find(self, experiment: int, wanted: CanonicalId, first: int) -> tuple[int, int, ReadPosition]:
        """Count the lines that are new, and return the total, and the last mark before a line with its number."""
        index = self._open(experiment, wanted)
        with index.lock:
            if index.end.offset > self._logs.log_size(experiment):
                index.numbers[1:], index.positions[1:], index.total, index.end = [], [], 0, ReadPosition()
            self._count_on(index, experiment, wanted)
            at = bisect_right(index.numbers, max(0, index.total + first if first < 0 else first)) - 1
            return index.total, index.numbers[at], index.positions[at]

    def _count_on(self, index: _LineIndex, experiment: int, wanted: CanonicalId) -> None:
        while True:
            blocks, end = self._logs.read_blocks(experiment, index.end)
            if end == index.end:
                return
            if index.total >= index.numbers[-1] + _STEP:
                index.numbers.append(index.total)
                index.positions.append(index.end)
            index.total += sum(block.count for block in blocks if wanted.names(block.job))
            index.end = end

    def _open(self, experiment: int, wanted: CanonicalId) -> _LineIndex:
        key = (experiment, wanted.job or "")
        with self._guard:
            index = self._indexes.pop(key, None) or _LineIndex()
            self._indexes[key] = index
            while len(self._indexes) > _MOST_INDEXES:
                self._indexes.popitem(last=False)
        return index

    def _read_blocks(self, experiment: int, wanted: CanonicalId, position: ReadPosition) -> Iterator[LogBlock]:
        while True:
            blocks, end = self._logs.read_blocks(experiment, position)
            yield from (block for block in blocks if wanted.names(block.job))
            if end == position:
                return
            position = end
