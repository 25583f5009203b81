"""The logs of all experiments below one folder: one file per experiment, frames in the order of their arrival."""

from __future__ import annotations

import errno
import json
import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from riseml.base.errors import LogUnreadable, StoreError
from riseml.base.names import JobName
from riseml.base.records import dataclass
from riseml.base.settings import DEFAULT_LOG_LIMIT
from riseml.model import Frame, JobKey, LogCursor
from riseml.store.logs.blocks import LogBlock, OutputLine
from riseml.store.logs.line_parser import find_open_lines
from riseml.store.logs.line_state import RecordKind
from riseml.store.logs.log_file import JobAttempt, LogFile, load_ends, load_records, renew_file
from riseml.store.logs.read_position import ReadPosition
from riseml.store.logs.recent_reads import LARGEST_READ, RecentReads
from riseml.store.logs.records import find_last_kind, measure_frames, pick_records
from riseml.store.logs.report_blocks import find_blocks, find_report_blocks
from riseml.store.logs.report_lines import KnownReports

_READ_AT_ONCE = 1 << 18  # bytes
_NEAR_END = 1 << 20  # bytes at the end of a log in which the last lines are searched first
_FAR_FROM_END = 1 << 26  # bytes at the end of a log in which they are searched at most
_COUNT_INTERVAL = 1 << 20  # bytes of a job between two saves of its count
_ENGINE_STREAM = 3  # messages that the job did not print
_BEGINNING = ReadPosition()

_FindBlocks = Callable[[bytes, ReadPosition, KnownReports | None], tuple[list[LogBlock], ReadPosition]]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LogFence:
    """Keeps two servers from writing into one log."""

    check: Callable[[], None] = lambda: None  # raises a StoreError while another server may write
    # An earlier server may still live, and have logs open: each log gets a new file before the first write, so that
    # what the earlier server writes goes into a file that no reader finds.
    renews_files: bool = False


_NO_FENCE = LogFence()


class LogStore:
    """The logs below one folder. Appending is safe from many threads, one thread a job; a reader needs only the file.

    Example:
        >>> logs = LogStore(Path("logs"))
        >>> logs.append_frames(JobKey(4, JobName("master"), 1), [Frame("2026-08-31T07:23:46Z", 1, b"step 1\\n")])
        >>> [line.text for line in read_all_lines(logs, 4)]
        [b'step 1']

    Args:
        folder: is created when it is missing.
        limit: bytes that one job may take in its log.
        fence: against another server.
    """

    def __init__(self, folder: Path, limit: int = DEFAULT_LOG_LIMIT, fence: LogFence = _NO_FENCE) -> None:
        self._folder = folder
        self._fence = fence
        self._renewed: set[int] = set()  # experiments whose logs have got new files
        self._quota = LogQuota(folder, limit)
        self._guard = threading.Lock()
        self._files: dict[int, LogFile] = {}
        self._recent = RecentReads()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def renew_files(self, experiments: Iterable[int]) -> None:
        """Give the logs of experiments new files, before anything reads or writes them, if an earlier server may live.

        Raises:
            OSError: a log cannot be copied.
        """
        with self._guard:
            for experiment in experiments:
                self._renew_file(experiment)

    def append_frames(self, key: JobKey, frames: Iterable[Frame]) -> None:
        """Append frames as one piece; nothing of a job whose log has reached the limit.

        Raises:
            OSError: they cannot be written; the caller repeats the call with the same frames.
        """
        with self._quota.admit_frames(key, list(frames)) as admitted:
            if admitted:
                self._check_fence()
                file = self._open_file(key.experiment)
                if file.is_removed:
                    self.close_experiment(key.experiment)
                    raise OSError(errno.ENOENT, "the file of the log was removed, and is written again from its host")
                file.note_missing(key)
                file.append_frames(key, admitted)

    def finish_job(self, key: JobKey) -> None:
        """End the open lines of the job: this attempt prints nothing more.

        Raises:
            OSError: the file cannot be written.
        """
        self._check_fence()
        self._open_file(key.experiment).finish_job(key)

    def is_job_finished(self, key: JobKey) -> bool:
        """Return True when `finish_job` was called, False also when the experiment's log was closed since."""
        with self._guard:
            file = self._files.get(key.experiment)
        return file is not None and (key.job, key.attempt) in file.ends

    def find_job_ends(self, experiment: int) -> Mapping[JobAttempt, int]:
        """Return the offsets after the last records of the jobs and attempts whose logs are complete."""
        with self._guard:
            file = self._files.get(experiment)
        return load_ends(self._log_path(experiment)) if file is None else file.ends

    def is_job_full(self, key: JobKey) -> bool:
        """Return True when the log of the job has reached the limit, so that nothing more of it is kept."""
        return self._quota.is_exceeded(key)

    def find_cursor(self, key: JobKey) -> LogCursor:
        """Return where the reading of the job's log at its host continues."""
        return self._open_file(key.experiment).cursors.get((key.job, key.attempt), LogCursor())

    def log_size(self, experiment: int) -> int:
        """Return the offset after the last record, in bytes.

        After it the file may hold the beginning of a piece that did not fit on the disk, and that is cut off later.
        """
        with self._guard:
            file = self._files.get(experiment)
        if file is not None:
            return file.size
        path = self._log_path(experiment)
        return path.stat().st_size if path.exists() else 0

    def read_blocks(
        self, experiment: int, position: ReadPosition, *, reports: bool = False
    ) -> tuple[list[LogBlock], ReadPosition]:
        """Return the lines that end in some bytes after a position, and where to continue.

        The place to continue knows the lines that are open there. A position without them costs a read from the
        beginning of the oldest one on.

        Args:
            experiment: whose log it is.
            position: where to begin.
            reports: whether to return blocks of reports, too; otherwise they are skipped.

        Raises:
            LogUnreadable: the file cannot be read.
        """
        blocks, end = self._find_in_log(find_blocks, experiment, position)
        return blocks if reports else [block for block in blocks if not block.is_report], end

    def read_report_blocks(self, experiment: int, position: ReadPosition) -> tuple[list[LogBlock], ReadPosition]:
        """Return the reports in some bytes after a position, as `read_blocks` does, and skip lines quickly."""
        return self._find_in_log(find_report_blocks, experiment, position)

    def _find_in_log(
        self, find: _FindBlocks, experiment: int, position: ReadPosition
    ) -> tuple[list[LogBlock], ReadPosition]:
        try:
            return self._find_in_file(find, experiment, position)
        except OSError as error:
            raise _refuse_log(self._log_path(experiment), error) from error

    def _find_in_file(
        self, find: _FindBlocks, experiment: int, position: ReadPosition
    ) -> tuple[list[LogBlock], ReadPosition]:
        path = self._log_path(experiment)
        unread = self.log_size(experiment) - position.offset
        if unread <= 0 or not path.exists():
            return [], position
        if position.lacks_open_lines:
            position = find_open_lines(_load_parts(path, position.open_from, position.offset), position)
        with self._guard:
            file = self._files.get(experiment)
        if file is None or unread > LARGEST_READ:
            records = load_records(path, position.offset, min(unread, _READ_AT_ONCE))
            return find(records, position, None if file is None else file.known_reports)
        place = (find, file, position)
        read = self._recent.find_read(place)
        if read is None:
            read = find(load_records(path, position.offset, unread), position, file.known_reports)
            if read[1].offset == position.offset + unread:  # otherwise what is appended later belongs to this read
                self._recent.keep(place, read)
        blocks, end = read
        return list(blocks), end

    def is_record_start(self, experiment: int, offset: int) -> bool:
        """Return True for an offset at which a record begins or a damaged part goes on, and for the end of the log;
        also where the log cannot be read, as a reader will say.
        """
        if not 0 < offset <= self.log_size(experiment):
            return offset == 0
        try:
            with self._log_path(experiment).open("rb") as file:
                file.seek(offset - 1)
                return file.read(1) in (b"\n", b"\0")
        except OSError:
            return True

    def read_last_lines(self, key: JobKey, count: int) -> list[OutputLine]:
        """Return the last lines of one attempt, as far as they are in the last 64 MiB of the log; each one is whole.

        Raises:
            LogUnreadable: the log cannot be read.
        """
        try:
            return self._find_last_lines(key, count)
        except OSError as error:
            raise _refuse_log(self._log_path(key.experiment), error) from error

    def _find_last_lines(self, key: JobKey, count: int) -> list[OutputLine]:
        path = self._log_path(key.experiment)
        end = size = self.log_size(key.experiment)
        if not size or not path.exists():
            return []
        near = _NEAR_END
        records = b""
        while True:
            start = _find_record_start(path, max(0, size - near))
            records = pick_records(load_records(path, start, end - start), key) + records
            blocks = find_blocks(records, _BEGINNING)[0]
            streams = {block.stream for block in blocks}
            cut = {stream for stream in streams if _goes_on_at(path, key, stream, start)}
            lines = _list_whole_lines(blocks, cut)
            if len(lines) >= count or start == 0 or near >= _FAR_FROM_END:
                return lines[-count:]
            near = 4 * near
            end = start

    def mend_log(self, key: JobKey) -> None:
        """Write a line into the log of an experiment that has ended where the file is missing, or its end is lost.

        Args:
            key: a job that has run, so that there was a log.

        Raises:
            LogUnreadable: the file cannot be read, or the line cannot be written.
        """
        path = self._log_path(key.experiment)
        try:
            if path.exists() and _is_whole(path):
                return
            is_lost = not path.exists()
            file = self._open_file(key.experiment)
            file.note_missing(key, f"the log was lost, or never arrived: {path} is missing" if is_lost else "")
            self.close_experiment(key.experiment)
        except OSError as error:
            raise _refuse_log(path, error) from error

    def check_readable(self, experiment: int) -> None:
        """Read the beginning of a log.

        Raises:
            LogUnreadable: that is not possible.
        """
        path = self._log_path(experiment)
        try:
            if path.exists():
                load_records(path, 0, 1)
        except OSError as error:
            raise _refuse_log(path, error) from error

    def end_open_lines(self, experiment: int) -> None:
        """End the last lines of all jobs of an experiment whose log is complete: no host holds more of them."""
        if self._log_path(experiment).exists():
            try:
                self._open_file(experiment).end_all_lines(experiment)
            except OSError as error:
                log.warning("the last line in the log of #%s is not complete: %s", experiment, error)

    def close_experiment(self, experiment: int) -> None:
        """Close the files of an experiment whose log is complete."""
        with self._guard:
            file = self._files.pop(experiment, None)
        if file is not None:
            self._recent.forget()
            file.close()
            self._quota.close_experiment(experiment)

    def close_all_but(self, experiments: frozenset[int]) -> None:
        """Close the files of all other experiments: a host that returns may have reopened one that was closed
        before."""
        with self._guard:
            other_experiments = self._files.keys() - experiments
        for experiment in other_experiments:
            self.close_experiment(experiment)

    def _open_file(self, experiment: int) -> LogFile:
        with self._guard:
            if experiment not in self._files:
                self._renew_file(experiment)
                self._files[experiment] = LogFile(self._log_path(experiment))
            return self._files[experiment]

    def _renew_file(self, experiment: int) -> None:
        if self._fence.renews_files and experiment not in self._renewed:
            renew_file(self._log_path(experiment))
            self._renewed.add(experiment)

    def _check_fence(self) -> None:
        try:
            self._fence.check()
        except StoreError as error:
            raise OSError(errno.ESTALE, error.message) from error

    def _log_path(self, experiment: int) -> Path:
        return self._folder / f"{experiment}.log"


def read_all_lines(logs: LogStore, experiment: int, position: ReadPosition = _BEGINNING) -> Iterator[OutputLine]:
    """Yield every complete line of a log after a position."""
    while True:
        blocks, end = logs.read_blocks(experiment, position)
        for block in blocks:
            yield from block.lines()
        if end == position:
            return
        position = end


class LogQuota:
    """Counts the bytes that the logs of jobs take on the disk: a job that prints without end must not fill it.

    The text counts, and the time and the name of the job before each line. So a job that prints only empty lines
    reaches its limit, too. A small file for each log (`4.counts` for `4.log`) holds the bytes of each job. After the
    server was killed, the file lacks less than 1 MiB per job.

    Safe from many threads; one thread a job.

    Args:
        folder: holds the files with the counts.
        limit: bytes of one job, all of its attempts together.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder = folder
        self._limit = limit
        self._lock = threading.Lock()
        self._counts: dict[int, dict[JobName, int]] = {}

    @contextmanager
    def admit_frames(self, key: JobKey, frames: list[Frame]) -> Iterator[list[Frame]]:
        """Give the frames that may be stored: all, some with a line about the limit, or none.

        The frames count when the `with` block ends without an error.
        """
        with self._lock:
            before = self._load_counts(key.experiment).get(key.job, 0)
        after = before + measure_frames(key, frames)
        yield frames if after <= self._limit else self._cut_frames(key, frames, before)
        with self._lock:
            counts = self._load_counts(key.experiment)
            counts[key.job] = min(after, self._limit + 1)
            if before <= self._limit and (after > self._limit or after // _COUNT_INTERVAL > before // _COUNT_INTERVAL):
                self._save_counts(key.experiment, counts)

    def is_exceeded(self, key: JobKey) -> bool:
        """Return True when the log of the job has reached the limit; nothing more of it is stored."""
        with self._lock:
            # not `_load_counts`, which would load the counts of a closed experiment again
            counts = self._counts.get(key.experiment)
            counts = _read_counts(self._counts_path(key.experiment)) if counts is None else counts
            return counts.get(key.job, 0) > self._limit

    def close_experiment(self, experiment: int) -> None:
        """Remove the counts of an experiment whose log is complete."""
        with self._lock:
            self._counts.pop(experiment, None)
            self._counts_path(experiment).unlink(missing_ok=True)

    def _cut_frames(self, key: JobKey, frames: list[Frame], size: int) -> list[Frame]:
        """Return the frames up to the first one beyond the limit, with its line ended, and a line about the limit."""
        admitted: list[Frame] = []
        for frame in frames:
            if size > self._limit:
                break
            size += measure_frames(key, [frame])
            admitted.append(frame)
        if not admitted:
            return admitted
        last = admitted[-1]
        if not last.data.endswith(b"\n"):
            admitted[-1] = Frame(last.at, last.stream, last.data + b"\n")
        mark = f"[riseml: the log of {key.job} has reached its limit of {self._limit:,} bytes; the rest is not kept]\n"
        return [*admitted, Frame(last.at, _ENGINE_STREAM, mark.encode())]

    def _load_counts(self, experiment: int) -> dict[JobName, int]:
        if experiment not in self._counts:
            self._counts[experiment] = _read_counts(self._counts_path(experiment))
        return self._counts[experiment]

    def _save_counts(self, experiment: int, counts: dict[JobName, int]) -> None:
        fresh = self._counts_path(experiment).with_suffix(".counting")
        fresh.write_text(json.dumps(counts))
        os.replace(fresh, self._counts_path(experiment))

    def _counts_path(self, experiment: int) -> Path:
        return self._folder / f"{experiment}.counts"


def _refuse_log(path: Path, error: OSError) -> LogUnreadable:
    cause = error.strerror or str(error)
    return LogUnreadable(f"the log {path} cannot be read: {cause}", "let the user of the server read this file")


def _is_whole(path: Path) -> bool:
    """Return False for a log whose end was lost: after a power cut it may have zeros there, or be shorter."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        last = file.read(1)
    return last in (b"\n", b"") and max([0, *load_ends(path).values()]) <= size


def _load_parts(path: Path, start: int, end: int) -> Iterator[bytes]:
    """Yield the whole records between two offsets in parts."""
    while start < end and (data := load_records(path, start, min(end - start, _READ_AT_ONCE))):
        yield data
        start += len(data)


def _find_record_start(path: Path, offset: int) -> int:
    """Return the offset of the first record that begins at an offset or after it."""
    if not offset:
        return 0
    with path.open("rb") as file:
        file.seek(offset - 1)
        return offset - 1 + len(file.readline())


def _goes_on_at(path: Path, key: JobKey, stream: int, end: int) -> bool:
    """Return True when a stream of one attempt has an open line at an offset: its record before that says so."""
    near = _NEAR_END
    last = max(0, end - _FAR_FROM_END)
    while end > last:
        start = _find_record_start(path, max(last, end - near))
        kind = find_last_kind(load_records(path, start, end - start), key, stream)
        if kind is not None:
            return kind is RecordKind.GOES_ON
        near = 4 * near
        end = start
    return False


def _list_whole_lines(blocks: list[LogBlock], cut: set[int]) -> list[OutputLine]:
    """Return lines that follow each other and are whole: those after the first lines of the streams in `cut`."""
    lines: list[OutputLine] = []
    left = set(cut)
    for block in blocks:
        block_lines = block.lines()
        if block.stream in left:
            left.discard(block.stream)
            lines = []
            block_lines = block_lines[1:]
        if not block.is_report:
            lines += block_lines
    return lines


def _read_counts(path: Path) -> dict[JobName, int]:
    """Return the counts in a file; none when it is missing, or empty after a power cut."""
    try:
        counts: dict[JobName, int] = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return counts
