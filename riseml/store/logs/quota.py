"""The limit of output per job: one job that prints without end must not fill the server's disk.

The limit counts the bytes on the disk: the text, and the time and the name of the job before each line. So a job that
prints only empty lines reaches its limit, too.

A small file for each log (`4.counts` for `4.log`) holds the bytes of each job. After the server was killed, the file
lacks less than 1 MiB per job.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from riseml.base.names import JobName
from riseml.model import Frame, JobKey
from riseml.store.logs.records import measure_frames

_SAVE_INTERVAL = 1 << 20  # bytes of a job between two saves of its count
_ENGINE_STREAM = 3  # messages that the job did not print


class LogQuota:
    """Counts the bytes that the logs of jobs take on the disk. Safe from many threads; one thread a job.

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
            if before <= self._limit and (after > self._limit or after // _SAVE_INTERVAL > before // _SAVE_INTERVAL):
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


def _read_counts(path: Path) -> dict[JobName, int]:
    """Return the counts in a file; none when it is missing, or empty after a power cut."""
    try:
        counts: dict[JobName, int] = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return counts
