"""The logs of all experiments below one folder: one file per experiment, frames in the order of their arrival."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from riseml.log_cursor import LogCursor
from riseml.model import Frame, JobKey
from riseml.settings import DEFAULT_LOG_LIMIT
from riseml.store.logs.blocks import LogBlock, OutputLine, ReadPosition, find_blocks, find_report_blocks
from riseml.store.logs.log_file import JobAttempt, LogFile, load_ends, load_records
from riseml.store.logs.quota import LogQuota
from riseml.store.logs.report_lines import KnownReports

_READ_AT_ONCE = 1 << 18  # bytes
_READ_FOR_LONG_LINE = 1 << 22  # bytes; more than the longest line, so that every call advances
_NEAR_END = 1 << 20  # bytes at the end of a log in which the last lines are searched
_BEGINNING = ReadPosition()

_Find = Callable[[bytes, ReadPosition, KnownReports | None], tuple[list[LogBlock], ReadPosition]]


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
    """

    def __init__(self, folder: Path, limit: int = DEFAULT_LOG_LIMIT) -> None:
        self._folder = folder
        self._quota = LogQuota(folder, limit)
        self._guard = threading.Lock()
        self._files: dict[int, LogFile] = {}
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def append_frames(self, key: JobKey, frames: Iterable[Frame]) -> None:
        """Append frames as one piece; nothing of a job whose log has reached the limit.

        Raises:
            OSError: they cannot be written; the caller repeats the call with the same frames.
        """
        with self._quota.admit_frames(key, list(frames)) as kept:
            if kept:
                self._open_file(key.experiment).append_frames(key, kept)

    def finish_job(self, key: JobKey) -> None:
        """End the open lines of the job: this attempt prints nothing more.

        Raises:
            OSError: the file cannot be written.
        """
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
        """Return the complete lines in some bytes after a position, and where to continue.

        A line whose last piece has not been written yet is left for the next call.

        Args:
            experiment: whose log it is.
            position: where to begin.
            reports: whether to return blocks of reports, too; otherwise they are skipped.
        """
        blocks, end = self._find_in_log(find_blocks, experiment, position)
        return blocks if reports else [block for block in blocks if not block.is_report], end

    def read_report_blocks(self, experiment: int, position: ReadPosition) -> tuple[list[LogBlock], ReadPosition]:
        """Return the reports in some bytes after a position, as `read_blocks` does, and skip lines quickly."""
        return self._find_in_log(find_report_blocks, experiment, position)

    def _find_in_log(self, find: _Find, experiment: int, position: ReadPosition) -> tuple[list[LogBlock], ReadPosition]:
        path = self._log_path(experiment)
        if not path.exists():
            return [], position
        with self._guard:
            file = self._files.get(experiment)
        known = None if file is None else file.known_reports
        limit = self.log_size(experiment) - position.offset
        blocks, end = find(load_records(path, position.offset, min(limit, _READ_AT_ONCE)), position, known)
        if end == position:  # no more data, or a long line in pieces
            blocks, end = find(load_records(path, position.offset, min(limit, _READ_FOR_LONG_LINE)), position, known)
        return blocks, end

    def read_last_lines(self, key: JobKey, count: int) -> list[OutputLine]:
        """Return the last lines of one attempt at a job, as far as they are in the last MiB of the log."""
        start = max(0, self.log_size(key.experiment) - _NEAR_END)
        path = self._log_path(key.experiment)
        if not path.exists():
            return []
        with path.open("rb") as file:
            file.seek(start)
            torn = len(file.readline()) if start else 0
        lines = read_all_lines(self, key.experiment, ReadPosition(start + torn))
        return [line for line in lines if (line.job, line.attempt) == (key.job, key.attempt)][-count:]

    def close_experiment(self, experiment: int) -> None:
        """Close the files of an experiment whose log is complete."""
        with self._guard:
            file = self._files.pop(experiment, None)
        if file is not None:
            file.close()
            self._quota.close_experiment(experiment)

    def close_all_but(self, experiments: frozenset[int]) -> None:
        """Close the files of all other experiments: a host that returns may have reopened one that was closed
        before."""
        with self._guard:
            others = self._files.keys() - experiments
        for experiment in others:
            self.close_experiment(experiment)

    def _open_file(self, experiment: int) -> LogFile:
        with self._guard:
            if experiment not in self._files:
                self._files[experiment] = LogFile(self._log_path(experiment))
            return self._files[experiment]

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
