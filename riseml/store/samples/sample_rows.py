"""One sample as a record of 48 bytes, and means of such records. Pure.

A record is its moment (seconds since 1970), the attempt at the job, a checksum and ten numbers of 4 bytes; NaN stands
for an amount that the host does not report. A number has 24 significant bits: an amount of memory is exact to one part
in 16 million. Zeros are a place that was never written.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from riseml.base.records import dataclass
from riseml.model import Sample, Traffic

AMOUNTS = (
    "cpu",
    "mem_used",
    "mem_total",
    "gpu",
    "gpu_mem_used",
    "gpu_mem_total",
    "net_in",
    "net_out",
    "disk_read",
    "disk_write",
)
"""What a row counts, in the order of its numbers; the units are those of `riseml.model`."""

_RECORD = struct.Struct(f"<IHH{len(AMOUNTS)}f")
_CHECK = slice(6, 8)  # the bytes of the checksum
SIZE = _RECORD.size
_MOST_ATTEMPTS = 2**16 - 1
_LARGEST = 3.0e38  # largest number of 4 bytes


class SampleRow(NamedTuple):
    """The use of a job at one moment, or its mean over some time from that moment on."""

    at: int  # seconds since 1970
    attempt: int
    amounts: tuple[float, ...]  # in the order of AMOUNTS; NaN: unknown


@dataclass(frozen=True, slots=True)
class Span:
    """The seconds since 1970 from `since` up to `until`, without `until` itself."""

    since: int
    until: int

    def holds(self, at: int) -> bool:
        """Return True for a moment of the span."""
        return self.since <= at < self.until


ALWAYS = Span(0, 2**32)


def make_row(sample: Sample, attempt: int) -> SampleRow:
    """Return a sample as a row."""
    moved = sample.traffic or Traffic()
    gpus = (sample.gpu, sample.gpu_mem_used, sample.gpu_mem_total)
    levels = (sample.cpu, sample.mem_used, sample.mem_total, *gpus)
    rates = (moved.net_in, moved.net_out, moved.disk_read, moved.disk_write)
    amounts = tuple(math.nan if amount is None else min(float(amount), _LARGEST) for amount in (*levels, *rates))
    return SampleRow(int(sample.at.timestamp()), min(attempt, _MOST_ATTEMPTS), amounts)


def pack_row(row: SampleRow) -> bytes:
    """Return the record of a row."""
    data = bytearray(_RECORD.pack(row.at, row.attempt, 0, *row.amounts))
    data[_CHECK] = _checksum(data)
    return bytes(data)


def unpack_rows(data: bytes, span: Span = ALWAYS) -> list[SampleRow]:
    """Return the rows of a span from the records in `data`, as they are stored.

    A place that was never written, or written in part, is left out.
    """
    usable = len(data) - len(data) % SIZE
    return [
        SampleRow(at, attempt, tuple(amounts))
        for place, (at, attempt, _, *amounts) in enumerate(_RECORD.iter_unpack(memoryview(data)[:usable]))
        if at and span.holds(at) and _is_whole(data[place * SIZE : (place + 1) * SIZE])
    ]


def find_last_moment(data: bytes) -> int | None:
    """Return the moment of the latest record in `data`; None: there is none."""
    usable = memoryview(data)[: len(data) - len(data) % SIZE]
    moments: list[tuple[int, int]] = [(record[0], place) for place, record in enumerate(_RECORD.iter_unpack(usable))]
    for at, place in sorted(moments, reverse=True):
        if at and _is_whole(data[place * SIZE : (place + 1) * SIZE]):
            return at
    return None


def average_rows(rows: Sequence[SampleRow], at: int) -> SampleRow:
    """Return the mean of rows as one row; an amount that no row knows stays unknown."""
    columns = zip(*(row.amounts for row in rows), strict=True)
    return SampleRow(at, rows[-1].attempt, tuple(_average(column) for column in columns))


def resample_rows(rows: Iterable[SampleRow], start: int, step: int) -> Iterator[SampleRow]:
    """Yield the means of rows in the order of time, one for each `step` seconds from `start` on that has any."""
    gathered: list[SampleRow] = []
    place = 0
    for row in rows:
        at = start + (row.at - start) // step * step
        if gathered and at != place:
            yield average_rows(gathered, place)
            gathered = []
        place = at
        gathered.append(row)
    if gathered:
        yield average_rows(gathered, place)


def _average(column: Iterable[float]) -> float:
    values = [value for value in column if not math.isnan(value)]
    return sum(values) / len(values) if values else math.nan


def _is_whole(record: bytes) -> bool:
    plain = bytearray(record)
    plain[_CHECK] = b"\0\0"
    return _checksum(plain) == record[_CHECK]


def _checksum(record: bytearray) -> bytes:
    return struct.pack("<H", zlib.crc32(record) & 0xFFFF)
