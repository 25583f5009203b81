"""Logs: one append-only file an experiment, every job's frames in the order of their arrival (`blocks`).

The file is its own cursor: after a crash a torn last record is cut off, and the last timestamp of a job with the number
of frames that carry it says where to read on. A small file beside it says where the logs of jobs that are complete end.
"""

from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from riseml.model import Frame, JobKey, LogCursor
from riseml.names import JobName
from riseml.settings import DEFAULT_LOG_LIMIT
from riseml.store.blocks import NOBODY, LogBlock, LogLine, ReadPosition, parse, recall, records, stream_of
from riseml.store.quota import LogQuota

_PIECE = 1 << 18  # bytes that are read at once
_CHUNK = 1 << 22  # more than the longest line, so that every call makes progress
_NEAR = 1 << 20  # bytes before the end in which the last lines are looked for
_BEGINNING = ReadPosition()


class LogStore:
    """The logs below one folder. Appending is safe from many threads; a reader needs nothing but the file.

    Args:
        folder: is made when it is missing.
        limit: bytes of one job's output that are kept.
    """

    def __init__(self, folder: Path, limit: int = DEFAULT_LOG_LIMIT) -> None:
        self._folder = folder
        self._quota = LogQuota(folder, limit)
        self._guard = threading.Lock()
        self._files: dict[int, _File] = {}
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def append_frames(self, key: JobKey, frames: Iterable[Frame]) -> None:
        """Write frames behind what is there, as one piece; nothing of a job that has written too much."""
        with self._quota.admit_frames(key, list(frames)) as kept:
            if kept:
                self._open(key.experiment).append(key, kept)

    def finish_job(self, key: JobKey) -> None:
        """Nothing more will come of this job; the lines that it left unfinished end here."""
        file = self._open(key.experiment)
        streams = sorted(file.begun.get((key.job, key.attempt), ()))
        if streams:
            file.append(key, [Frame("", stream, b"\n") for stream in streams])
        file.finish((key.job, key.attempt))

    def is_job_finished(self, key: JobKey) -> bool:
        """True when `finish` was called; false also when that is long ago."""
        with self._guard:
            file = self._files.get(key.experiment)
        return file is not None and (key.job, key.attempt) in file.ends

    def find_job_ends(self, experiment: int) -> Mapping[tuple[JobName, int], int]:
        """The offsets behind the last records of the jobs and attempts whose logs are complete."""
        with self._guard:
            file = self._files.get(experiment)
        return _load_ends(self._path(experiment)) if file is None else file.ends

    def is_job_full(self, key: JobKey) -> bool:
        """True when the job has written so much that nothing more of it is kept."""
        return self._quota.is_exceeded(key)

    def find_cursor(self, key: JobKey) -> LogCursor:
        """Where to read the job's log on."""
        return self._open(key.experiment).cursors.get((key.job, key.attempt), LogCursor())

    def log_size(self, experiment: int) -> int:
        """The offset behind the last record."""
        path = self._path(experiment)
        return path.stat().st_size if path.exists() else 0

    def read_blocks(self, experiment: int, mark: ReadPosition) -> tuple[list[LogBlock], ReadPosition]:
        """The complete lines in some bytes behind a mark, and the mark to go on from.

        A line whose last record has not been written yet is left for the next call.
        """
        path = self._path(experiment)
        if not path.exists():
            return [], mark
        blocks, end = parse(_load(path, mark.offset, _PIECE), mark)
        if end == mark:  # nothing more, or a long line in pieces
            blocks, end = parse(_load(path, mark.offset, _CHUNK), mark)
        return blocks, end

    def read_last_lines(self, experiment: int, job: JobName, count: int) -> list[LogLine]:
        """The last lines of one job, as far as they are near the end of the log."""
        start = max(0, self.log_size(experiment) - _NEAR)
        path = self._path(experiment)
        if not path.exists():
            return []
        with path.open("rb") as file:
            file.seek(start)
            torn = len(file.readline()) if start else 0
        return [line for line in read_all(self, experiment, ReadPosition(start + torn)) if line.job == job][-count:]

    def close_experiment(self, experiment: int) -> None:
        """Forget an experiment whose log is complete."""
        with self._guard:
            file = self._files.pop(experiment, None)
        if file is not None:
            file.close()
            self._quota.close_experiment(experiment)

    def close_all_but(self, experiments: frozenset[int]) -> None:
        """Forget all experiments but these: a host that comes back may still tell of one that was closed long ago."""
        with self._guard:
            others = self._files.keys() - experiments
        for experiment in others:
            self.close_experiment(experiment)

    def _open(self, experiment: int) -> _File:
        with self._guard:
            if experiment not in self._files:
                self._files[experiment] = _File(self._path(experiment))
            return self._files[experiment]

    def _path(self, experiment: int) -> Path:
        return self._folder / f"{experiment}.log"


class _File:
    """One open log with the cursor of each of its jobs."""

    def __init__(self, path: Path) -> None:
        self.cursors: dict[tuple[JobName, int], LogCursor] = {}
        self.begun: dict[tuple[JobName, int], dict[int, int]] = {}  # `blocks.records`
        self.ends: Mapping[tuple[JobName, int], int] = _load_ends(path)  # replaced, never changed
        self._path = path
        self._lock = threading.Lock()
        self._is_closed = False
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._recover(path)

    def append(self, key: JobKey, frames: list[Frame]) -> None:
        owner = (key.job, key.attempt)
        begun = dict(self.begun.get(owner, {}))  # what cannot be written comes again
        view = memoryview(records(key, frames, begun))
        with self._lock:
            self._check()
            end = os.lseek(self._file, 0, os.SEEK_END)
            try:
                while view:
                    view = view[os.write(self._file, view) :]
            except OSError:  # a full disk takes the beginning of what does not fit; the same frames come again
                os.ftruncate(self._file, end)
                raise
            self.begun[owner] = begun
            self._note(owner, frames)

    def finish(self, owner: tuple[JobName, int]) -> None:
        with self._lock:
            self._check()
            ends = {**self.ends, owner: os.lseek(self._file, 0, os.SEEK_END)}
            fresh = self._path.with_suffix(".ending")
            fresh.write_text(json.dumps([[job, attempt, end] for (job, attempt), end in ends.items()]))
            os.replace(fresh, self._path.with_suffix(".ends"))
            self.ends = ends

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            os.close(self._file)

    def _check(self) -> None:
        if self._is_closed:  # its number may be another file's by now; who opens the log again gets a new one
            raise OSError(errno.EBADF, "the log was closed meanwhile")

    def _recover(self, path: Path) -> None:
        """Cut a torn record off and find every cursor again."""
        whole = 0
        with path.open("rb") as file:
            for record in file:
                if record.endswith(b"\n"):
                    whole += len(record)
                    kind, job, attempt, at, text = record.split(b" ", 4)
                    owner = (JobName(job.decode()), int(attempt))
                    recall(kind[0], len(text) - 1, self.begun.setdefault(owner, {}))
                    stamp = "" if at == NOBODY.encode() else at.decode()
                    self._note(owner, [Frame(stamp, stream_of(kind[0]), b"")])
        os.ftruncate(self._file, whole)
        self.ends = {owner: end for owner, end in self.ends.items() if end <= whole}

    def _note(self, owner: tuple[JobName, int], frames: list[Frame]) -> None:
        """Where the job's log was read up to: its last timestamp, and how many frames carry it."""
        stamped = [frame.at for frame in reversed(frames) if frame.at]
        if not stamped:
            return
        at = stamped[0]
        same = next((index for index, other in enumerate(stamped) if other != at), len(stamped))
        known = self.cursors.get(owner)
        if same == len(stamped) and known is not None and known.at == at:
            same += known.frames_held
        self.cursors[owner] = LogCursor(at, same)


def _load_ends(path: Path) -> dict[tuple[JobName, int], int]:
    beside = path.with_suffix(".ends")
    rows = json.loads(beside.read_text()) if beside.exists() else []
    return {(JobName(job), attempt): end for job, attempt, end in rows}


def _load(path: Path, offset: int, limit: int) -> bytes:
    """Whole records, about `limit` bytes."""
    with path.open("rb") as file:
        file.seek(offset)
        data = file.read(limit)
        if data and b"\n" not in data:
            data += file.readline()
    return data[: data.rfind(b"\n") + 1]


def read_all(logs: LogStore, experiment: int, mark: ReadPosition = _BEGINNING) -> Iterator[LogLine]:
    """Every complete line of a log behind a mark."""
    while True:
        blocks, end = logs.read_blocks(experiment, mark)
        for block in blocks:
            yield from block.lines()
        if end == mark:
            return
        mark = end
