"""Reads what MLflow's client writes into a folder: a part of `event_reader`. Python 3.6 or newer, standard library
only.

MLFLOW_TRACKING_URI may be a folder. Then a run is the folder EXPERIMENT/RUN with `meta.yaml`, and a metric of it is the
file `metrics/NAME`, which grows by a line for each value: `MILLISECONDS VALUE STEP`, perhaps with a data set behind it.

The metrics of the first run of a job have their own names. Those of other runs, such as nested ones, have the name of
the run before them: `fold-2/loss`.
"""

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterator

MOST_METRIC_FILES = 1000
_MOST_RUNS = 1000
_MOST_META = 1 << 16  # bytes of meta.yaml
_MOST_LINES = 1 << 16  # bytes of lines that are read at once
_MOST_RUN_NAME = 100  # characters
_FIRST_RUN_EARLY = 1.0  # seconds by which the start of a run may differ from that of its job
_LAST_MOMENT = 253402300800  # seconds since 1970; the end of the year 9999
_LAST_STEP = 10**15 - 1  # that a report takes
_START = re.compile(rb"^start_time: '?([0-9]{1,15})'?\s*$", re.MULTILINE)


class MlflowValue:
    """One value of a metric."""

    def __init__(self, name: str, value: float, step: int, at: float) -> None:
        self.name = name
        self.value = value
        self.step = step
        self.at = at  # seconds since 1970


class MlflowRun:
    """One run of the folder."""

    def __init__(self, path: str, since: float) -> None:
        self.path = path
        self.since = since  # when the values begin that this job has logged, in seconds since 1970
        self.prefix = None  # type: str | None


class _MetricFile:
    def __init__(self, run: MlflowRun, path: str, name: str) -> None:
        self.run = run
        self.path = path
        self.name = name
        self.offset = 0  # of the next line
        self.is_damaged = False


class MlflowFolder:
    """What was read of one folder.

    Args:
        folder: MLFLOW_TRACKING_URI.
        began: when the job began, in seconds since 1970. Of a run that is older only newer values are read.
        tell_once: prints a problem, once for each key.
    """

    def __init__(self, folder: str, began: float, tell_once: "Callable[[str, str], None]") -> None:
        self.folder = folder
        self.began = began
        self.tell_once = tell_once
        self.runs = {}  # type: dict[str, MlflowRun]
        self.files = {}  # type: dict[str, _MetricFile]
        self.has_first = False  # a run has metrics without its name

    def search(self) -> None:
        """Look for new runs and metrics."""
        new_runs = []  # type: list[tuple[float, str]]
        for path in _list_runs(self.folder):
            if path not in self.runs:
                started = _read_start(path)
                if started is not None:  # else it is being written
                    new_runs.append((started, path))
        for started, path in sorted(new_runs):
            if len(self.runs) >= _MOST_RUNS:
                self.tell_once("runs", f"only {_MOST_RUNS} runs of MLflow are read")
                break
            is_own = started >= self.began - _FIRST_RUN_EARLY
            run = self.runs[path] = MlflowRun(path, 0.0 if is_own else self.began - _FIRST_RUN_EARLY)
            if is_own:
                self._take_first(run)
        for run in self.runs.values():
            self._search_metrics(run)

    def _take_first(self, run: MlflowRun) -> None:
        """Give the first run of the job metrics without its name."""
        if not self.has_first:
            self.has_first = True
            run.prefix = ""

    def _search_metrics(self, run: MlflowRun) -> None:
        top = os.path.join(run.path, "metrics")
        for parent, below, names in os.walk(top):
            below.sort()
            for name in sorted(names):
                path = os.path.join(parent, name)
                if path in self.files:
                    continue
                if len(self.files) >= MOST_METRIC_FILES:
                    self.tell_once("mlflow", f"only {MOST_METRIC_FILES} metrics of runs of MLflow are read")
                    return
                if os.path.isfile(path) and not os.path.islink(path):
                    self.files[path] = _MetricFile(run, path, os.path.relpath(path, top))

    def read_new(self, most: int, deadline: float = 0.0) -> "Iterator[MlflowValue]":
        """Give values that are new. A file that was read is the last one the next time.

        Args:
            most: about how many bytes are read.
            deadline: when to end, by time.monotonic(); 0: never.
        """
        for path, file in list(self.files.items()):
            if most <= 0 or (deadline and time.monotonic() > deadline):
                return
            try:
                if file.is_damaged or os.stat(path).st_size <= file.offset:
                    continue
                lines = _read_lines(path, file.offset)
            except OSError:  # a run that was removed
                del self.files[path]
                continue
            if lines is None:
                file.is_damaged = True
                self.tell_once(path, f"{path!r} is not read beyond byte {file.offset}: it has no lines")
            elif lines:
                self.files[path] = self.files.pop(path)
                most -= len(lines)
                file.offset += len(lines)
                yield from self._read_values(file, lines)

    def _read_values(self, file: _MetricFile, lines: bytes) -> "Iterator[MlflowValue]":
        for line in lines.splitlines():
            try:
                at, value, step = read_metric_line(line)
            except ValueError:
                self.tell_once(file.path, f"{file.path!r} has lines that are no values of a metric: {line[:80]!r}")
                continue
            if at >= file.run.since:
                yield MlflowValue(self._find_prefix(file.run) + file.name, value, step, at)

    def _find_prefix(self, run: MlflowRun) -> str:
        """Return what the metrics of a run have before their names."""
        if run.prefix is None:
            self._take_first(run)  # a run of an earlier attempt goes on
        if run.prefix is None:
            run.prefix = _read_run_name(run.path) + "/"
        return run.prefix


def _read_lines(path: str, offset: int) -> "bytes | None":
    """Return the next whole lines of a file; empty: they are being written; None: it is no file of lines."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        data = os.pread(descriptor, _MOST_LINES, offset)
    finally:
        os.close(descriptor)
    end = data.rfind(b"\n") + 1
    return None if not end and len(data) == _MOST_LINES else data[:end]


def read_metric_line(line: bytes) -> "tuple[float, float, int]":
    """Return the time in seconds, the value and the step of one line.

    Raises:
        ValueError: it has none.
    """
    parts = line[:500].split(b" ")
    if len(parts) < 2 or len(parts[0]) > 15:
        raise ValueError
    at = int(parts[0]) / 1000
    step = int(parts[2]) if len(parts) > 2 else 0  # MLflow before 1.0 has no steps
    if not 0 <= at < _LAST_MOMENT or abs(step) > _LAST_STEP:
        raise ValueError
    return at, float(parts[1]), step


def _list_runs(folder: str) -> "list[str]":
    """Return the folders of the runs."""
    return [
        os.path.join(folder, experiment, run)
        for experiment in _list_folders(folder)
        for run in _list_folders(os.path.join(folder, experiment))
    ]


def _list_folders(folder: str) -> "list[str]":
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return sorted(
            entry.name for entry in entries if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
        )
    return []


def _read_start(path: str) -> "float | None":
    """Return when a run began, in seconds since 1970; None: it is no run, or being written."""
    match = _START.search(_read_begin(os.path.join(path, "meta.yaml"), _MOST_META))
    return int(match.group(1)) / 1000 if match else None


def _read_run_name(path: str) -> str:
    text = _read_begin(os.path.join(path, "tags", "mlflow.runName"), 4 * _MOST_RUN_NAME).decode("utf-8", "replace")
    return text.strip()[:_MOST_RUN_NAME] or os.path.basename(path)[:8]


def _read_begin(path: str, most: int) -> bytes:
    """Return the begin of a file; empty: there is none."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            return os.read(descriptor, most)
        finally:
            os.close(descriptor)
    return b""
