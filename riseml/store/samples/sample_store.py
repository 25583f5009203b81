"""The samples of all jobs below one folder: a folder for each experiment, a file for each of its jobs."""

from __future__ import annotations

import threading
from pathlib import Path

from riseml.base.names import JobName
from riseml.model import JobKey, Sample
from riseml.store.samples.sample_file import SampleFile
from riseml.store.samples.sample_rows import SampleRow, Span, make_row

_SUFFIX = ".samples"


class SampleStore:
    """The samples below one folder. Safe from many threads.

    Example:
        >>> store = SampleStore(Path("samples"))
        >>> store.add_sample(JobKey(4, JobName("master"), 1), sample)
        >>> store.read_rows(4, JobName("master"), Span(0, 2**32))

    Args:
        folder: is created with the first sample.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._last: dict[tuple[int, JobName], int | None] = {}  # the moments of the last samples, as far as known

    def add_sample(self, key: JobKey, sample: Sample) -> None:
        """Write a sample of a job into its file.

        Raises:
            OSError: it cannot be written.
        """
        row = make_row(sample, key.attempt)
        owner = (key.experiment, key.job)
        file = self._file(key.experiment, key.job)
        with self._lock:
            if owner not in self._last:
                self._folder.mkdir(exist_ok=True, mode=0o700)
                (self._folder / str(key.experiment)).mkdir(exist_ok=True, mode=0o700)
                self._last[owner] = file.find_last()
            file.add_row(row, self._last[owner])
            self._last[owner] = row.at

    def close_experiment(self, experiment: int) -> None:
        """Write the last means of an experiment whose jobs have ended.

        Raises:
            OSError: it cannot be written.
        """
        with self._lock:
            self._last = {owner: at for owner, at in self._last.items() if owner[0] != experiment}
            for path in (self._folder / str(experiment)).glob(f"*{_SUFFIX}"):
                SampleFile(path).finish()

    def find_last(self, key: JobKey) -> int | None:
        """Return the moment of a job's last sample, in seconds since the epoch; None: there is none, or its file cannot
        be read."""
        try:
            return self._file(key.experiment, key.job).find_last()
        except OSError:
            return None

    def read_rows(self, experiment: int, job: JobName, span: Span) -> list[SampleRow]:
        """Return the rows of a job in a span, in the order of time; none for a job that was never sampled.

        Raises:
            OSError: its file cannot be read.
        """
        return self._file(experiment, job).read_rows(span)

    def read_minutes(self, experiment: int, job: JobName, span: Span) -> list[SampleRow]:
        """Return the means of the minutes of a job in a span, in the order of time.

        Raises:
            OSError: its file cannot be read.
        """
        return self._file(experiment, job).read_minutes(span)

    def _file(self, experiment: int, job: JobName) -> SampleFile:
        return SampleFile(self._folder / str(experiment) / f"{job}{_SUFFIX}")
