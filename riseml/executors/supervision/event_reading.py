"""The program that reads files with metrics beside a job (`job_programs.event_reader`), for a supervisor.

It starts some time after the job: most short jobs write none, and it takes 30 ms of processor time. A job that ends
before it gets one at its end, where there are such files. Python 3.6 or newer, standard library only.
"""

import os
import signal
import time

from riseml.executors.supervision import process_tree

_DELAY = 2.0  # seconds between the start of the job and that of the reader
_MARK = "tfevents"
_RUN = "meta.yaml"  # a file of each run of MLflow
_WANDB_END = ".wandb"  # of the file of each run of wandb
_MOST_FOLDERS = 1000  # that are searched at the end of a job
_EXIT_NOT_EXECUTED = 127


class EventReading:
    """The reader of one job.

    Args:
        command: of the program, without its arguments.
        arguments: `jobs`, `trackers` and `patterns`: the other arguments of the program.
        environment: of the job.
        workdir: of the job.
    """

    def __init__(
        self, command: "list[str]", arguments: "dict[str, object]", environment: "dict[str, str]", workdir: str
    ) -> None:
        self.pid = -1  # of the reader while it runs
        self.source, self._output = os.pipe()  # what it prints; a stream of the job like its stdout
        os.set_blocking(self.source, False)
        self._command = command
        self._arguments = arguments
        self._environment = environment
        self._workdir = workdir
        self._began = time.time()
        self._due = time.monotonic() + _DELAY
        self._is_started = False
        self._input = -1  # its end tells the reader that the job has ended

    def find_pause(self) -> "float | None":
        """Return the seconds until the reader starts; None: it has started."""
        return None if self._is_started else max(0.0, self._due - time.monotonic())

    def start_due(self) -> None:
        """Start the reader, if it is time."""
        if not self._is_started and time.monotonic() >= self._due:
            self._start("input")

    def finish(self) -> bool:
        """Let the reader read the rest, and end. Return True while it does."""
        if not self._is_started and self._has_files():
            self._start("once")
        self._is_started = True
        if self._input >= 0:
            os.close(self._input)
            self._input = -1
        return self.pid > 0

    def note_end(self) -> None:
        """Note that the reader has ended."""
        self.pid = -1

    def _has_files(self) -> bool:
        folder = self._environment.get("OUTPUT_DIR", "")
        for root in [folder, *([self._workdir] if self._arguments["patterns"] else [])]:
            for count, (_, _, names) in enumerate(os.walk(root)):
                if count > _MOST_FOLDERS or any(map(_has_metrics, names)):
                    return True
        return False

    def _start(self, how: str) -> None:
        self._is_started = True
        reader, self._input = os.pipe()
        patterns = self._arguments["patterns"]
        trackers = self._arguments["trackers"]
        assert isinstance(patterns, (list, tuple)) and isinstance(trackers, (list, tuple))
        arguments = [how, str(self._arguments["jobs"]), repr(self._began), ",".join(trackers), *map(str, patterns)]
        command = [*self._command, *arguments]
        try:
            self.pid = os.fork()
        except OSError:  # no process is left for it
            self.pid = -1
        if self.pid == 0:
            self._become_reader(command, reader)
        os.close(reader)
        os.close(self._output)

    def _become_reader(self, command: "list[str]", source: int) -> None:
        """Turn the child into the reader."""
        try:
            os.setpgid(0, 0)
            process_tree.reset_signals(signal.SIGTERM)  # each process of a job gets it
            os.dup2(source, 0)
            os.dup2(self._output, 1)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            process_tree.raise_oom_score()
            os.chdir(self._workdir)
            os.execvpe(command[0], command, self._environment)
        finally:
            os._exit(_EXIT_NOT_EXECUTED)


def _has_metrics(name: str) -> bool:
    """Return True for the name of a file that may have metrics."""
    return _MARK in name or name == _RUN or name.endswith(_WANDB_END)
