"""Reports the scalars of TensorBoard's event files below OUTPUT_DIR, and the metrics of runs of MLflow and wandb: the
code of a job needs no line for riseml.

`python3 -IS event_reader.py HOW JOBS BEGAN TRACKERS [PATTERN ...]`, beside the main process of a job. It reads what
writers append, and prints each scalar as a report (`reports`) on stdout. So scalars travel in the log of the job, and
only new ones do. Python 3.6 or newer, standard library only.

HOW says what tells it that the job has ended: `signal` (SIGUSR1), `input` (the end of stdin), or `once`: it has ended.
Then the program reads what is left, and ends. SIGTERM goes to each process of a job, and is no end.

JOBS is how many jobs of the experiment have a reader: they may see the same files. Then a reader takes the files that
have the name of its host, and holds a lock on each, so that no other reader takes it.

BEGAN is when the job began, in seconds; empty: when this program was written into a file. Files of an earlier attempt
are there, too: of a file whose first event is older, only events that are newer are read.

TRACKERS names what is read: some of `tensorboard`, `mlflow` and `wandb`, with commas. The runs of MLflow are in the
folder MLFLOW_TRACKING_URI, if that is one below OUTPUT_DIR; each job has its own (`mlflow_files`). The runs of wandb
are anywhere below OUTPUT_DIR (`wandb_files`).

PATTERN is one of `outputs`, below the working folder: what it matches is moved below OUTPUT_DIR when the job has ended.

The name of a metric is the path of the file's folder below OUTPUT_DIR and the tag: `train/loss`. The bounds are below.
It uses one part of a hundred of a processor at most, and is late rather than busy.
"""

import contextlib
import fcntl
import glob
import os
import select
import signal
import sys
import time

from riseml.job_programs.event_media import MediaWriter
from riseml.job_programs.event_records import (
    MOST_DATA,
    MOST_TAGS,
    Damaged,
    read_scalars,
    read_wall_time,
    split_records,
)
from riseml.job_programs.mlflow_files import MlflowFolder
from riseml.job_programs.reports import print_problem, send_metrics
from riseml.job_programs.wandb_files import WANDB_END, WandbRuns

PAUSE = 2.0  # seconds between two passes
SHARE = 0.01  # part of a processor that reading takes
SEARCH_SHARE = 0.003  # and the search for new files: a job that does nothing else is idle below 0.01 (`idle_timeout`)
LONGEST_PAUSE = 60.0  # seconds
LAST_TIME = 8  # seconds for what is left when the job has ended
MOST_FILES = 1000  # event files
MOST_FOLDERS = 10000  # folders that are searched
MOST_NAMES = 100  # metrics: the server keeps no more
CHUNK = 1 << 18  # bytes that are read at once
PASS_BYTES = 4 << 20  # bytes of all files in one pass, so that it ends soon after the job
RUN_BYTES = 1 << 20  # bytes of runs of MLflow in one pass
MARK = "tfevents"
_EARLY = 1.0  # seconds by which the time of a file may differ from BEGAN


class EventFile:
    """One file, and how far it was read."""

    def __init__(self, path: str, run: str) -> None:
        self.path = path
        self.run = run  # the folder below OUTPUT_DIR; empty: OUTPUT_DIR itself
        self.offset = 0  # of the next record
        self.identity = None  # type: tuple[int, int] | None
        self.seen = None  # type: tuple[int, int] | None
        self.lock = -1  # descriptor with the lock; -1: there is none
        self.since = None  # type: float | None

    def has_changed(self, status: os.stat_result) -> bool:
        """Return True when there may be something to read."""
        identity = (status.st_dev, status.st_ino)
        if self.identity not in (None, identity) or status.st_size < self.offset:  # another file has this name now
            self.offset = 0
            self.since = None
            self.release()
            self.seen = None
        self.identity = identity
        return self.seen != (status.st_size, status.st_mtime_ns)

    def release(self) -> None:
        """Close the file."""
        if self.lock >= 0:
            os.close(self.lock)
            self.lock = -1


class EventReader:
    """Reads the event files of one job.

    Args:
        folder: OUTPUT_DIR.
        jobs: of the experiment that have a reader.
        began: when the job began.
        patterns: of further files and folders, below the working folder.
        trackers: what is read.
        runs: the folder with the runs of MLflow.
    """

    def __init__(
        self,
        folder: str,
        jobs: int,
        began: float,
        patterns: "tuple[str, ...]" = (),
        trackers: "tuple[str, ...]" = ("tensorboard",),
        runs: str = "",
    ) -> None:
        self.patterns = patterns
        self.folder = folder
        self.jobs = jobs
        self.began = began
        self.files = {}  # type: dict[str, EventFile]
        self.others = set()  # type: set[str]
        self.names = {}  # type: dict[tuple[str, str, str], str]
        self.metrics = {}  # type: dict[str, str]
        self.problems = set()  # type: set[str]
        self.next_search = 0.0
        self.known = {}  # type: dict[tuple[str, str], bool]
        self.reads_events = "tensorboard" in trackers
        self.media = MediaWriter(folder, self._tell_once)
        self.mlflow = None  # type: MlflowFolder | None
        self.wandb = WandbRuns(jobs, began, self._tell_once) if "wandb" in trackers else None
        if "mlflow" in trackers and runs.startswith(folder + "/"):
            self.mlflow = MlflowFolder(os.path.normpath(runs), began, self._tell_once)

    def read_new(self, deadline: float = 0.0) -> None:
        """Read what is new, and report it.

        Args:
            deadline: when to end, by time.monotonic(), however much there is to read; 0: after `PASS_BYTES`, and with
                a search only where one is due.
        """
        began = time.monotonic()
        if deadline or began >= self.next_search:
            if self.reads_events or self.wandb is not None:
                self._search()
            if self.mlflow is not None:
                self.mlflow.search()
            ended = time.monotonic()
            self.next_search = ended + (ended - began) / SEARCH_SHARE
        left = sys.maxsize if deadline else PASS_BYTES
        for path, file in sorted(self.files.items()):
            if deadline and time.monotonic() > deadline:
                self._tell_late()
                return
            try:
                status = os.stat(path)
            except OSError:  # a run that was deleted
                file.release()
                del self.files[path]
                continue
            if file.has_changed(status):
                left -= self._read_file(file, status, max(left, CHUNK), deadline)
        if self.mlflow is not None:
            self._report_runs(self.mlflow, deadline)
        if self.wandb is not None:
            self._report_wandb(self.wandb, deadline)

    def _report_runs(self, mlflow: MlflowFolder, deadline: float) -> None:
        """Report what is new in the runs of MLflow."""
        while True:
            is_at_end = True
            for value in mlflow.read_new(RUN_BYTES, deadline):
                is_at_end = False
                name = self._find_name("mlflow", "", value.name)
                if name:
                    send_metrics({name: value.value, "step": value.step}, value.at)
            if is_at_end or not deadline:
                break
        if deadline and time.monotonic() > deadline:
            self._tell_once("end", "the job has ended, and not all runs of MLflow were read in time")

    def _report_wandb(self, wandb: WandbRuns, deadline: float) -> None:
        """Report what is new in the runs of wandb."""
        while True:
            for record in wandb.read_new(RUN_BYTES, deadline):
                names = {self._find_name("wandb", "", name): value for name, value in record.values.items()}
                values = {name: value for name, value in names.items() if name}  # type: dict[str, object]
                if record.step is not None:
                    values["step"] = record.step
                send_metrics(values, record.at)
            if not deadline or not wandb.has_more:
                break
        if deadline and time.monotonic() > deadline:
            self._tell_once("end", "the job has ended, and not all runs of wandb were read in time")

    def _search(self) -> None:
        """Look for new files."""
        folders = 0
        for root, place in self._list_roots():
            for parent, below, names in os.walk(place):
                below[:] = sorted(name for name in below if not self._is_passed_over(parent, name))
                folders += 1
                if folders > MOST_FOLDERS:
                    self._tell_once("folders", f"only {MOST_FOLDERS} folders of the output are searched")
                    return
                for name in sorted(names):
                    self._add_found(os.path.join(parent, name), name, os.path.relpath(parent, root))
                    if self.wandb is not None and name.endswith(WANDB_END):
                        below.clear()  # its media, and links to event files

    def _is_passed_over(self, parent: str, name: str) -> bool:
        """Return True for a folder that is not searched. MLflow's autolog copies event files into its runs."""
        return name.startswith(".") or (self.mlflow is not None and os.path.join(parent, name) == self.mlflow.folder)

    def _list_roots(self) -> "list[tuple[str, str]]":
        """Return the folders to search, each behind the folder from which its name counts."""
        roots = [(self.folder, self.folder)]
        for pattern in self.patterns:
            for name in sorted(glob.glob(glob.escape(os.getcwd()) + "/" + pattern))[:MOST_FILES]:
                if os.path.isdir(name):
                    roots.append((os.getcwd(), name))
                else:
                    self._add_found(name, os.path.basename(name), os.path.relpath(os.path.dirname(name), os.getcwd()))
        return roots

    def _add_found(self, path: str, name: str, run: str) -> None:
        """Take a file whose name says that it has metrics."""
        if self.wandb is not None and name.endswith(WANDB_END):
            self.wandb.add_file(path)
        elif self.reads_events and MARK in name and path not in self.files and path not in self.others:
            self._add_file(path, name, run)

    def _add_file(self, path: str, name: str, run: str) -> None:
        if len(self.files) >= MOST_FILES:
            self._tell_once("files", f"only {MOST_FILES} event files of the output are read")
            return
        if os.path.islink(path) or not os.path.isfile(path):
            return
        if self.jobs > 1 and not names_host(name, os.uname().nodename):
            self._pass_over(path)
            return
        self.files[path] = EventFile(path, "" if run == "." else run)

    def _pass_over(self, path: str) -> None:
        """Leave a file to the reader of another job."""
        if len(self.others) < MOST_TAGS:
            self.others.add(path)

    def _read_file(self, file: EventFile, status: os.stat_result, most: int, deadline: float) -> int:
        """Read records of a file, and report them; return how many bytes."""
        try:
            descriptor = self._open(file)
        except OSError:
            return 0
        if descriptor < 0:
            return 0
        begin = file.offset
        try:
            while file.offset - begin < most and not (deadline and time.monotonic() > deadline):
                if not self._read_piece(file, descriptor, status.st_size):
                    file.seen = (status.st_size, status.st_mtime_ns)
                    return file.offset - begin
            if deadline:
                self._tell_late()
        except Damaged as problem:
            file.seen = (status.st_size, status.st_mtime_ns)
            self._tell_once(file.path, f"the event file {file.path!r} is not read beyond byte {file.offset}: {problem}")
        except OSError as problem:
            self._tell_once(file.path, f"the event file {file.path!r} cannot be read: {problem.strerror}")
        finally:
            if file.lock < 0:
                os.close(descriptor)
        return file.offset - begin

    def _open(self, file: EventFile) -> int:
        """Return the descriptor of a file; -1 for one that another reader has."""
        if file.lock >= 0:
            return file.lock
        descriptor = os.open(file.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
        if self.jobs > 1:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                self._pass_over(file.path)
                del self.files[file.path]
                return -1
            except OSError:  # a file system without locks: the name of the host decides
                return descriptor
            file.lock = descriptor
        return descriptor

    def _read_piece(self, file: EventFile, descriptor: int, size: int) -> bool:
        """Read the next records; False when there is no whole one.

        Raises:
            Damaged: they are no records.
        """
        buffered = os.pread(descriptor, min(CHUNK, size - file.offset), file.offset)
        datas, consumed, needed = split_records(buffered)
        if not datas and needed > len(buffered):
            if file.offset + needed > size:
                return False
            if needed > MOST_DATA:
                file.offset += needed  # a record that is passed over
                return True
            buffered = os.pread(descriptor, needed, file.offset)
            datas, consumed, _ = split_records(buffered)
        self._report(file, datas)
        file.offset += consumed
        return bool(datas)

    def _report(self, file: EventFile, datas: "list[bytes]") -> None:
        """Report the scalars of records; those of one step together."""
        group = {}  # type: dict[str, float]
        last = None
        for data in datas:
            try:
                if file.since is None:
                    file.since = 0.0 if read_wall_time(data) >= self.began - _EARLY else self.began - _EARLY
                scalars = read_scalars(data, file.run, self.known, self.media.values)
                self.media.write_values(file.run, file.since)
            except Damaged:  # the checksum is right: a message of another kind
                continue
            for scalar in scalars:
                name = self._find_name("tensorboard", file.run, scalar.tag)
                if not name or scalar.at < file.since:
                    continue
                if last is not None and (scalar.step != last.step or name in group):
                    send_metrics(dict(group, step=last.step), last.at)
                    group = {}
                group[name] = scalar.value
                last = scalar
        if last is not None:
            send_metrics(dict(group, step=last.step), last.at)

    def _find_name(self, source: str, run: str, tag: str) -> str:
        """Return the name of a metric; empty for one too many. The name belongs to the source of its first value; that
        of another source has the source behind it, and the server hides its curve while the two agree.
        """
        key = (source, run, tag)
        name = self.names.get(key)
        if name is None:
            name = run + "/" + tag if run else tag
            if self.metrics.get(name, source) != source:
                name = f"{name} ({source})"
            if name not in self.metrics and len(self.metrics) >= MOST_NAMES:
                self._tell_once(
                    "names",
                    f"the job has more than {MOST_NAMES} metrics: {name[:200]!r} and others are left out",
                )
                name = ""
            else:
                self.metrics[name] = source
            if len(self.names) < MOST_TAGS:
                self.names[key] = name
        return name

    def _tell_late(self) -> None:
        self._tell_once("end", "the job has ended, and not all of its event files were read in time")

    def _tell_once(self, key: str, problem: str) -> None:
        if key not in self.problems and len(self.problems) < MOST_NAMES:
            self.problems.add(key)
            print_problem(problem)


def names_host(name: str, host: str) -> bool:
    """Return True when the name of a file may be one that a writer on this host chose: `events.out.tfevents.TIME.HOST`,
    with more behind it. A name of another form may be anyone's.
    """
    time_text, _, place = name.partition(MARK + ".")[2].partition(".")
    return not time_text.isdigit() or not place or (place + ".").startswith(host + ".")


def find_pause(used: float) -> float:
    """Return the seconds until the next pass, after one that has used so much of a processor."""
    return min(max(PAUSE, used / SHARE), LONGEST_PAUSE)


def follow(reader: EventReader, end_reader: int) -> None:
    """Read until a descriptor is readable: the job has ended.

    Args:
        reader: of the files.
        end_reader: the descriptor.
    """
    while True:
        before = time.process_time()
        reader.read_new()
        if select.select([end_reader], [], [], find_pause(time.process_time() - before))[0]:
            return


def main() -> None:
    """Read until the job has ended."""
    how, jobs, began, trackers = sys.argv[1:5]
    end_reader = 0
    if how == "signal":
        end_reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer)
        signal.signal(signal.SIGUSR1, lambda *_: None)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    folder = os.environ.get("OUTPUT_DIR", "")
    if not os.path.isabs(folder):
        return
    with contextlib.suppress(OSError):
        os.nice(5)
    since = float(began) if began else os.stat(__file__).st_mtime
    runs = os.environ.get("MLFLOW_TRACKING_URI", "")
    reader = EventReader(folder, int(jobs), since, tuple(sys.argv[5:]), tuple(trackers.split(",")), runs)
    if how != "once":
        follow(reader, end_reader)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(LAST_TIME + 2)
    deadline = time.monotonic() + LAST_TIME
    reader.read_new(deadline)


def run() -> None:
    """Run the program; the training goes on without it when it fails."""
    try:
        main()
    except Exception as problem:  # noqa: BLE001  # a fault of the reader must not end the training
        print_problem(f"files with metrics are not read any more: {problem!r:.300}")


if __name__ == "__main__":
    run()
