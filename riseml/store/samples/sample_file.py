"""The file of one job: every sample of the last hour, means of ten seconds for a day, means of minutes for all time.

The first two parts are rings: the place of a record follows from its moment, so that a new record replaces the one an
hour, or a day, before. Minutes are appended. Unwritten places take no room on the disk; a job takes at most 588 kB, and
69 kB for each day that it runs. A record that a power cut has torn fails its checksum, and counts as not written; the
next minute replaces a torn last one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from riseml.store.samples.sample_rows import (
    SIZE,
    SampleRow,
    Span,
    average_rows,
    find_last_moment,
    pack_row,
    unpack_rows,
)

_MAGIC = b"riseml-samples-1"
_HOUR = 3600  # seconds
_DAY = 86400  # seconds
_TEN = 10  # seconds; their means are kept
_MINUTE = 60  # seconds; their means are kept
_SECONDS_AT = len(_MAGIC)
_TENS_AT = _SECONDS_AT + _HOUR * SIZE
_MINUTES_AT = _TENS_AT + _DAY // _TEN * SIZE
_READ_AT_ONCE = 4096  # records


class SampleFile:
    """The samples of one job at `path`. One thread at a time writes; readers need no lock."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add_row(self, row: SampleRow, before: int | None) -> None:
        """Write a sample. When it begins new ten seconds or a new minute, also write the means of the time before.

        Args:
            row: the sample.
            before: the moment of the sample before it; None: there is none.

        Raises:
            OSError: it cannot be written.
        """
        with self._open_to_write() as file:
            if before is not None:
                _write_means(file, before, row.at)
            os.pwrite(file, pack_row(row), _SECONDS_AT + row.at % _HOUR * SIZE)

    def finish(self) -> None:
        """Write the means of the last seconds and of the last minute; it may be called again.

        Raises:
            OSError: they cannot be written.
        """
        with self._open_to_write() as file:
            last = _find_last(file)
            if last is not None:
                _write_means(file, last, last + _MINUTE)

    def find_last(self) -> int | None:
        """Return the moment of the last sample; None: there is none."""
        with self._open_to_read() as file:
            return None if file is None else _find_last(file)

    def read_rows(self, span: Span) -> list[SampleRow]:
        """Return the rows of a span in the order of time, each part in the finest resolution that is kept.

        Raises:
            OSError: the file cannot be read.
        """
        with self._open_to_read() as file:
            if file is None:
                return []
            fine = _read_ring(os.pread(file, _HOUR * SIZE, _SECONDS_AT), _HOUR, span)
            tens = _read_ring(os.pread(file, _DAY // _TEN * SIZE, _TENS_AT), _DAY, span)
            minutes = list(_read_minutes(file, span))
        covered = {row.at // _TEN for row in fine}
        fine += [row for row in tens if row.at // _TEN not in covered]
        covered = {row.at // _MINUTE for row in fine}
        fine += [row for row in minutes if row.at // _MINUTE not in covered]
        return sorted(fine)

    def read_minutes(self, span: Span) -> list[SampleRow]:
        """Return the means of the minutes of a span in the order of time, which is much less to read than all rows. The
        newest minutes, which the file does not have yet, come from the samples.

        Raises:
            OSError: the file cannot be read.
        """
        with self._open_to_read() as file:
            if file is None:
                return []
            minutes = list(_read_minutes(file, span))
            last = _find_last(file)
            for minute in () if last is None else (last // _MINUTE * _MINUTE - _MINUTE, last // _MINUTE * _MINUTE):
                is_new = not minutes or minutes[-1].at < minute
                if is_new and span.holds(minute) and (rows := _read_seconds(file, minute, _MINUTE)):
                    minutes.append(average_rows(rows, minute))
        return minutes

    @contextmanager
    def _open_to_write(self) -> Iterator[int]:
        """Give the open file; a file that is new, or of another format, is emptied first."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        with _close_after(os.open(self._path, flags, 0o600)) as file:
            if not _is_ours(file):
                os.ftruncate(file, 0)
                os.pwrite(file, _MAGIC, 0)
            yield file

    @contextmanager
    def _open_to_read(self) -> Iterator[int | None]:
        """Give the open file; None: there is none."""
        if not self._path.exists():
            yield None
            return
        with _close_after(os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)) as file:
            yield file if _is_ours(file) else None


@contextmanager
def _close_after(file: int) -> Iterator[int]:
    try:
        yield file
    finally:
        os.close(file)


def _is_ours(file: int) -> bool:
    return os.pread(file, len(_MAGIC), 0) == _MAGIC


def _write_means(file: int, before: int, now: int) -> None:
    """Write the means of the periods around the sample at `before` that are complete at `now`."""
    ten = before - before % _TEN
    minute = before - before % _MINUTE
    if not ten <= now < ten + _TEN and (rows := _read_seconds(file, ten, _TEN)):
        os.pwrite(file, pack_row(average_rows(rows, ten)), _TENS_AT + ten // _TEN % (_DAY // _TEN) * SIZE)
    if not minute <= now < minute + _MINUTE and (rows := _read_seconds(file, minute, _MINUTE)):
        _append_minute(file, average_rows(rows, minute))


def _append_minute(file: int, row: SampleRow) -> None:
    """Append a minute. A minute that exists is written again; an earlier one is left out."""
    count = _count_minutes(file)
    for place in range(count - 1, -1, -1):
        last = _read_minute(file, place)
        if last is not None and last.at < row.at:
            break
        if last is not None and last.at > row.at:
            return  # a clock that was set back
        count = place
    os.pwrite(file, pack_row(row), _MINUTES_AT + count * SIZE)


def _read_seconds(file: int, start: int, count: int) -> list[SampleRow]:
    """Return the samples of `count` seconds from `start` on; a ring has no such part across its end."""
    data = os.pread(file, count * SIZE, _SECONDS_AT + start % _HOUR * SIZE)
    return unpack_rows(data, Span(start, start + count))


def _read_ring(data: bytes, seconds: int, span: Span) -> list[SampleRow]:
    """Return the rows of a span from a ring, without those that are older than the time which the ring holds."""
    last = find_last_moment(data)
    return [] if last is None else unpack_rows(data, Span(max(span.since, last - seconds + 1), span.until))


def _find_last(file: int) -> int | None:
    return find_last_moment(os.pread(file, _HOUR * SIZE, _SECONDS_AT))


def _count_minutes(file: int) -> int:
    """Return how many whole records of minutes there are; an incomplete last record does not count."""
    return max(0, os.fstat(file).st_size - _MINUTES_AT) // SIZE


def _read_minute(file: int, place: int) -> SampleRow | None:
    rows = unpack_rows(os.pread(file, SIZE, _MINUTES_AT + place * SIZE))
    return rows[0] if rows else None


def _read_minutes(file: int, span: Span) -> Iterator[SampleRow]:
    """Yield the minutes of a span."""
    low = 0
    high = _count_minutes(file)
    end = high
    while low < high:  # bisect to the first minute of the span; a damaged record counts as early
        middle = (low + high) // 2
        row = _read_minute(file, middle)
        low, high = (low, middle) if row is not None and row.at >= span.since else (middle + 1, high)
    for place in range(low, end, _READ_AT_ONCE):
        size = min(_READ_AT_ONCE, end - place) * SIZE
        rows = unpack_rows(os.pread(file, size, _MINUTES_AT + place * SIZE), span)
        if not rows:
            return
        yield from rows
