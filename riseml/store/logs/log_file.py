"""One open log file, with the cursor and the open lines of each of its jobs.

The file is its own index: after a crash a torn last record is cut off, and the records tell where to read each job's
log on. A small file (`4.ends` for `4.log`) holds the offsets at which the complete logs of jobs end.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from riseml.log_cursor import FramePosition, LogCursor
from riseml.model import Frame, JobKey
from riseml.names import JobName
from riseml.store.logs.line_state import RecordKind
from riseml.store.logs.records import OpenLines, RecordRun, encode_frames, feed_line, split_runs
from riseml.store.logs.report_lines import KnownReports

JobAttempt = tuple[JobName, int]
"""A job of the file's experiment, and which attempt at it."""

_RECOVERED_AT_ONCE = 1 << 22  # bytes

log = logging.getLogger(__name__)


class LogFile:
    """One log file, open for appending. Safe from many threads; one thread a job."""

    def __init__(self, path: Path) -> None:
        self.cursors: dict[JobAttempt, LogCursor] = {}
        # offsets at the end of complete logs; replaced, never changed
        self.ends: Mapping[JobAttempt, int] = load_ends(path)
        self.size = 0  # bytes of whole pieces: the offset after the last record
        self.known_reports = KnownReports()  # what readers have found
        self._open_lines: dict[JobAttempt, OpenLines] = {}
        self._path = path
        self._lock = threading.Lock()
        self._is_closed = False
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            self._recover()
        except BaseException:
            os.close(self._file)
            raise

    def append_frames(self, key: JobKey, frames: list[Frame]) -> None:
        """Append frames: all of them or none. The first frames of an attempt end the open lines of earlier ones.

        Raises:
            OSError: they cannot be written, or the file was closed; the caller repeats the call with the same frames.
        """
        owner = (key.job, key.attempt)
        if owner not in self._open_lines:
            for job, attempt in list(self._open_lines):
                if job == key.job and attempt < key.attempt:
                    self._end_open_lines(replace(key, attempt=attempt))
        data, lines = encode_frames(key, frames, self._open_lines.get(owner, {}))
        view = memoryview(data)
        with self._lock:
            self._refuse_if_closed()
            end = os.lseek(self._file, 0, os.SEEK_END)
            try:
                while view:
                    view = view[os.write(self._file, view) :]
            except OSError:  # a full disk may hold the beginning of the frames
                os.ftruncate(self._file, end)
                raise
            self.size = end + len(data)
            self._open_lines[owner] = lines
            for stream in {frame.stream for frame in frames}:
                stamps = (frame.at for frame in reversed(frames) if frame.stream == stream)
                self._advance_cursor(owner, stream, stamps)

    def finish_job(self, key: JobKey) -> None:
        """End the open lines of the job, and record that its log is complete.

        Raises:
            OSError: it cannot be written, or the file was closed.
        """
        owner = (key.job, key.attempt)
        self._end_open_lines(key)
        with self._lock:
            self._refuse_if_closed()
            ends = {**self.ends, owner: os.lseek(self._file, 0, os.SEEK_END)}
            fresh = self._path.with_suffix(".ending")
            with fresh.open("w") as file:
                json.dump([[job, attempt, end] for (job, attempt), end in ends.items()], file)
                file.flush()
                os.fsync(file.fileno())  # else a power cut may leave the new name with no content
            os.replace(fresh, self._path.with_suffix(".ends"))
            self.ends = ends

    def end_all_lines(self, experiment: int) -> None:
        """End the open lines of all jobs, because no host holds more of them.

        Raises:
            OSError: it cannot be written, or the file was closed.
        """
        for job, attempt in list(self._open_lines):
            self._end_open_lines(JobKey(experiment, job, attempt))

    def close(self) -> None:
        """Close the file; a thread that still holds this object gets an `OSError` when it appends."""
        with self._lock:
            self._is_closed = True
            os.close(self._file)

    def _end_open_lines(self, key: JobKey) -> None:
        streams = sorted(self._open_lines.get((key.job, key.attempt), ()))
        if streams:
            self.append_frames(key, [Frame("", stream, b"\n") for stream in streams])

    def _refuse_if_closed(self) -> None:
        if self._is_closed:  # the descriptor number may belong to another file by now
            raise OSError(errno.EBADF, "the log was closed meanwhile")

    def _recover(self) -> None:
        """Cut a torn record off, and find every cursor and every open line again."""
        whole = 0
        while data := load_records(self._path, whole, _RECOVERED_AT_ONCE):
            for run in split_runs(data):
                self._recover_run(run)
            whole += len(data)
        os.ftruncate(self._file, whole)
        self.size = whole
        self.ends = {owner: end for owner, end in self.ends.items() if end <= whole}

    def _recover_run(self, run: RecordRun) -> None:
        head = run.head
        owner = (head.job, head.attempt)
        size = run.text_size() if head.kind is RecordKind.GOES_ON else 0  # only the phase after the last record matters
        self._open_lines[owner] = feed_line(self._open_lines.get(owner, {}), head.stream, head.kind, size)
        self._advance_cursor(owner, head.stream, run.stamps_from_last())

    def _advance_cursor(self, owner: JobAttempt, stream: int, stamps_from_last: Iterable[str]) -> None:
        """Move the cursor of a job behind frames of one stream with these timestamps."""
        positions = self.cursors.get(owner, LogCursor()).positions
        position = _advance_position(positions.get(stream), stamps_from_last)
        if position is not None:
            position = position._replace(goes_on=stream in self._open_lines.get(owner, {}))
            self.cursors[owner] = LogCursor({**positions, stream: position})


def _advance_position(before: FramePosition | None, stamps_from_last: Iterable[str]) -> FramePosition | None:
    """Return the position after frames with these timestamps; frames without a timestamp do not count."""
    at, held = "", 0
    for stamp in stamps_from_last:
        if stamp and at and stamp != at:
            return FramePosition(at, held)
        if stamp:
            at, held = stamp, held + 1
    if not at:
        return before
    return FramePosition(at, held + before.frames_held if before is not None and before.at == at else held)


def load_ends(path: Path) -> dict[JobAttempt, int]:
    """Return the offsets after the last records of the jobs whose logs in the file at `path` are complete.

    None are known when a power cut has left a damaged file of ends: the log itself can still be read.
    """
    beside = path.with_suffix(".ends")
    try:
        rows = json.loads(beside.read_text()) if beside.exists() else []
        return {(JobName(job), attempt): end for job, attempt, end in rows}
    except (ValueError, TypeError):
        log.warning("%s is damaged, and is not used", beside)
        return {}


def load_records(path: Path, offset: int, limit: int) -> bytes:
    """Return whole records from an offset on, about `limit` bytes; nothing when there is no whole one."""
    with path.open("rb") as file:
        file.seek(offset)
        data = file.read(limit)
        if data and b"\n" not in data:
            data += file.readline()
    return data[: data.rfind(b"\n") + 1]
