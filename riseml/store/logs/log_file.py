"""One open log file, with the cursor and the open lines of each of its jobs.

The file is its own index: after a crash a torn last record is cut off, and the records tell where to read each job's
log on. A small file (`4.ends` for `4.log`) holds the offsets at which the complete logs of jobs end.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from riseml.base.names import JobName
from riseml.model import Frame, FramePosition, JobKey, LogCursor
from riseml.store.logs.line_state import RecordKind
from riseml.store.logs.records import OpenLines, RecordRun, encode_frames, feed_line, split_runs
from riseml.store.logs.report_lines import KnownReports

JobAttempt = tuple[JobName, int]
"""A job of the file's experiment, and which attempt at it."""

_OWN_STREAM = 3
_LONGEST_TAIL = 1 << 16  # bytes that are searched for zeros
_RECOVERED_AT_ONCE = 1 << 22  # bytes
_RENEWING = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC

log = logging.getLogger(__name__)


class LogFile:
    """One log file, open for appending. Safe from many threads; one thread a job."""

    def __init__(self, path: Path) -> None:
        self.cursors: dict[JobAttempt, LogCursor] = {}
        # offsets at the end of complete logs; replaced, never changed
        self.ends: Mapping[JobAttempt, int] = load_ends(path)
        self.size = 0  # bytes of whole pieces: the offset after the last record
        self.missing = 0  # bytes that were behind the last record when the file was opened
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
            self._save_ends(ends)
            self.ends = ends

    def note_missing(self, key: JobKey, cause: str = "") -> None:
        """Write a line, once, that says why lines are missing, if any are.

        Args:
            key: whose log it is.
            cause: what has happened; empty: the end is lost, as far as bytes are missing.

        Raises:
            OSError: it cannot be written, or the file was closed.
        """
        if not self.missing and not cause:
            return
        cause = cause or f"the last {self.missing:,} bytes of this log are lost, and lines are missing here"
        self.missing = 0
        self.append_frames(key, [Frame("", _OWN_STREAM, f"[riseml: {cause}]\n".encode())])
        with self._lock:
            self._save_ends(self.ends)

    @property
    def is_removed(self) -> bool:
        """True when the file has no name any more, so that no reader finds what is written."""
        return os.fstat(self._file).st_nlink == 0

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

    def _save_ends(self, ends: Mapping[JobAttempt, int]) -> None:
        fresh = self._path.with_suffix(".ending")
        with fresh.open("w") as file:
            json.dump([[job, attempt, end] for (job, attempt), end in ends.items()], file)
            file.flush()
            os.fsync(file.fileno())  # else a power cut may leave the new name with no content
        os.replace(fresh, self._path.with_suffix(".ends"))

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
        position = 0
        while data := load_records(self._path, position, _RECOVERED_AT_ONCE):
            for run in split_runs(data):
                if isinstance(run, RecordRun):
                    self._recover_run(run)
            position += len(data)
            whole = position if data.endswith(b"\n") else whole
        self.missing = max([0, *(end - whole for end in self.ends.values()), self._count_zeros(whole)])
        os.ftruncate(self._file, whole)
        self.size = whole
        self.ends = {owner: end for owner, end in self.ends.items() if end <= whole}

    def _count_zeros(self, whole: int) -> int:
        """Return how many bytes follow the last record when there are zeros among them, as after a power cut."""
        end = os.lseek(self._file, 0, os.SEEK_END)
        return end - whole if b"\0" in os.pread(self._file, _LONGEST_TAIL, max(whole, end - _LONGEST_TAIL)) else 0

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
    at = ""
    count = 0
    for stamp in stamps_from_last:
        if stamp and at and stamp != at:
            return FramePosition(at, count)
        if stamp:
            at = stamp
            count += 1
    if not at:
        return before
    return FramePosition(at, count + before.frames_held if before is not None and before.at == at else count)


def renew_file(path: Path) -> None:
    """Put a copy of the log at `path` in its place: another process that has the log open writes into the former file
    from then on, which has no name any more. What it wrote in part is cut off when the copy is opened.

    Raises:
        OSError: it cannot be copied.
    """
    if not path.exists():
        return
    fresh = path.with_suffix(".renewing")
    with path.open("rb") as source, open(os.open(fresh, _RENEWING, 0o600), "wb") as target:
        shutil.copyfileobj(source, target, _RECOVERED_AT_ONCE)
        target.flush()
        os.fsync(target.fileno())
    os.replace(fresh, path)


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
    """Return whole records from an offset on, about `limit` bytes; nothing when there is no whole one. Zeros, which a
    power cut may leave, come as they are.
    """
    with path.open("rb") as file:
        file.seek(offset)
        data = file.read(limit)
        if data and b"\n" not in data:
            if not data.strip(b"\0"):
                return data
            data += file.readline()
    return data[: data.rfind(b"\n") + 1]
