"""How much of a job's output is kept: one job that never stops talking must not fill the server's disk.

The counts are in a small file beside each log, which is behind by at most a step when the server is killed.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from riseml.model import Frame, JobKey
from riseml.names import JobName

_STEP = 1 << 20  # bytes between two notes of a count
_ENGINE = 3  # the stream of words that are not the job's own


class LogQuota:
    """The bytes that jobs have written so far. Safe from many threads; one thread a job.

    Args:
        folder: where the counts are kept.
        limit: bytes of one job, over all of its attempts.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder = folder
        self._limit = limit
        self._lock = threading.Lock()
        self._counts: dict[int, dict[JobName, int]] = {}

    @contextmanager
    def admit_frames(self, key: JobKey, frames: list[Frame]) -> Iterator[list[Frame]]:
        """What may be kept of these frames: all, some with a line that says so, or nothing. They count once they are
        written.
        """
        with self._lock:
            before = self._load(key.experiment).get(key.job, 0)
        after = before + sum(len(frame.data) for frame in frames)
        yield frames if after <= self._limit else self._cut(key, frames, before)
        with self._lock:
            counts = self._load(key.experiment)
            counts[key.job] = min(after, self._limit + 1)
            if before <= self._limit and (after > self._limit or after // _STEP > before // _STEP):
                self._save(key.experiment, counts)

    def is_exceeded(self, key: JobKey) -> bool:
        """True when nothing more of this job will be kept."""
        with self._lock:
            counts = self._counts.get(key.experiment)
            counts = _read(self._path(key.experiment)) if counts is None else counts  # not kept: it may be closed
            return counts.get(key.job, 0) > self._limit

    def close_experiment(self, experiment: int) -> None:
        """Forget an experiment whose log is complete."""
        with self._lock:
            self._counts.pop(experiment, None)
            self._path(experiment).unlink(missing_ok=True)

    def _cut(self, key: JobKey, frames: list[Frame], size: int) -> list[Frame]:
        """The frames up to the one that is too much, which ends its line, and the mark."""
        kept: list[Frame] = []
        for frame in frames:
            if size > self._limit:
                break
            size += len(frame.data)
            kept.append(frame)
        if not kept:
            return kept
        last = kept[-1]
        if not last.data.endswith(b"\n"):
            kept[-1] = Frame(last.at, last.stream, last.data + b"\n")
        mark = f"[riseml: {key.job} has printed more than {self._limit:,} bytes; what follows is not kept]\n"
        return [*kept, Frame(last.at, _ENGINE, mark.encode())]

    def _load(self, experiment: int) -> dict[JobName, int]:
        if experiment not in self._counts:
            self._counts[experiment] = _read(self._path(experiment))
        return self._counts[experiment]

    def _save(self, experiment: int, counts: dict[JobName, int]) -> None:
        fresh = self._path(experiment).with_suffix(".counting")
        fresh.write_text(json.dumps(counts))
        os.replace(fresh, self._path(experiment))

    def _path(self, experiment: int) -> Path:
        return self._folder / f"{experiment}.counts"


def _read(path: Path) -> dict[JobName, int]:
    """The counts of a file. One that a power cut has emptied counts from the beginning; the log goes on."""
    try:
        found: dict[JobName, int] = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return found
