"""An experiment or a set, as a program sees it: its state, its log, its metrics, its output."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from riseml.base.errors import Conflict, ExperimentFailed, Interrupted, NotFound, RisemlError, UsageError
from riseml.base.names import BUILD
from riseml.base.records import dataclass
from riseml.python_api.errors import add_hints
from riseml.python_api.outputs import RunOutput
from riseml.python_api.program import Program

if TYPE_CHECKING:
    from riseml import wire
    from riseml.client.server_client import Client, LogQuery
    from riseml.python_api.forwarding import Forwarding
    from riseml.python_api.results import Results

Answer = TypeVar("Answer")

RESULT_FILE = ".riseml-result.json"
"""The file of an output that has what a submitted function returned."""

_ENDS = {"FAILED": ExperimentFailed, "KILLED": Interrupted}
_OVER = frozenset({"FINISHED", "FAILED", "KILLED"})


@dataclass(frozen=True, slots=True)
class RunJob:
    """A job of an experiment, as it was when it was asked for."""

    id: str  # `4.worker.1`
    name: str  # `worker.1`
    state: str  # `RUNNING`
    host: str | None  # None: it has no place yet
    exit_code: int | None  # None: it has not exited
    message: str  # the reason of its state, for people


@dataclass(frozen=True, slots=True)
class RunLine:
    """A line that a job has printed."""

    job: str  # its ID: `4.worker.1`
    time: str  # RFC 3339
    stream: Literal["stdout", "stderr", "engine"]  # engine: a message of the engine or of riseml about the job
    text: str  # without its newline


@dataclass(frozen=True, slots=True)
class MetricPoint:
    """A value of a metric; of a metric with more than 256 values, the mean of successive ones."""

    step: int | None  # None: reported without a step
    value: float | None  # None: no value is finite
    time: str  # RFC 3339: when it was reported, or the last of several
    count: int = 1  # values
    least: float | None = None  # the smallest finite value
    greatest: float | None = None


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a command in a job has printed, and how it ended."""

    exit_code: int
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True, slots=True)
class Run:
    """An experiment, or a set of experiments. Every property asks the server, so that it is true now.

    Example:
        run = riseml.get(4)
        for line in run.logs():
            handle(line.text)
        run.wait()
        print(run.metrics()["loss"])
    """

    program: Program
    id: str  # `4`, `144.3`, `paul.18`

    def __repr__(self) -> str:
        return f"<riseml run {self.id}>"

    def _repr_html_(self) -> str:
        """Return a table for a notebook: what it is, how it goes, and its metrics."""
        view = self.view()
        rows = [("State", view["state"]), ("Reason", view["message"]), ("Project", view["project"])]
        rows += [("Parameters", ", ".join(f"{name}={value}" for name, value in view["parameters"].items()))]
        rows += [(metric["name"], str(metric["last"])) for metric in view["metrics"]]
        cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows if text)
        return f"<table><caption>Experiment {escape(view['id'])}</caption>{cells}</table>"

    def view(self) -> wire.ExperimentView:
        """Return all that the server says of it: the `ExperimentView` of docs/json.md."""
        return self._ask(lambda client: client.get_experiment(self.id))

    @property
    def state(self) -> str:
        """Its state: CREATED, BUILDING, PENDING, STARTING, RUNNING, FINISHED, FAILED or KILLED."""
        return self.view()["state"]

    @property
    def is_over(self) -> bool:
        """True once it has FINISHED, FAILED, or was KILLED."""
        return self.state in _OVER

    @property
    def parameters(self) -> dict[str, str]:
        """The values of its parameters, as they were written; empty for a set."""
        return self.view()["parameters"]

    @property
    def jobs(self) -> list[RunJob]:
        """Its jobs; of a set, those of all its experiments."""
        view = self.view()
        jobs = [job for part in view["experiments"] or [view] for job in part["jobs"]]
        return [
            RunJob(job["id"], job["name"], job["state"], job["host"], job["exit_code"], job["message"]) for job in jobs
        ]

    @property
    def experiments(self) -> list[Run]:
        """The experiments of a set; empty for one experiment."""
        return [Run(self.program, part["id"]) for part in self.view()["experiments"]]

    @property
    def output(self) -> RunOutput:
        """What its jobs have written to OUTPUT_DIR."""
        return RunOutput(self.program, self.id)

    @add_hints()
    def wait(self, timeout: float | None = None, *, check: bool = True) -> Run:
        """Wait until it has ended; return it.

        A server that is lost meanwhile is started again, as `riseml logs` does; the training goes on without it.

        Args:
            timeout: seconds; None: as long as it takes.
            check: raise when it did not end well.

        Raises:
            TimeoutError: it has not ended in time. It goes on.
            ExperimentFailed: it FAILED; the message has the reason.
            Interrupted: it was KILLED.
        """
        return self.wait_until(Deadline(timeout, f"experiment {self.id}"), check=check)

    @add_hints()
    def wait_until(self, deadline: Deadline, *, check: bool = True) -> Run:
        """Wait as `wait` does, until a deadline that another thread may end early."""
        from riseml.client.server_client import LogQuery

        end: wire.EndEntry | None = None
        for entry in self._follow(LogQuery(tail=0, beats=True), deadline):
            if entry["type"] == "end":
                end = entry
        if check and end is not None and end["state"] in _ENDS:
            raise _make_failure(self.view())
        return self

    @add_hints()
    def logs(self, *, follow: bool = True, tail: int | None = None, timeout: float | None = None) -> Iterator[RunLine]:
        """Yield the lines of its jobs, merged in the order in which they ended.

        Args:
            follow: wait for more lines until it has ended.
            tail: only so many of the last lines.
            timeout: seconds for the whole log; None: as long as it takes.

        Raises:
            TimeoutError: it has not ended in time.
        """
        deadline = Deadline(timeout, f"the log of experiment {self.id}")
        return self.logs_until(deadline, follow=follow, tail=tail)

    def logs_until(self, deadline: Deadline, *, follow: bool = True, tail: int | None = None) -> Iterator[RunLine]:
        """Yield lines as `logs` does, until a deadline that another thread may end early."""
        from riseml.client.server_client import LogQuery

        if tail is not None and (isinstance(tail, bool) or not isinstance(tail, int) or tail < 0):
            with add_hints():
                raise UsageError(f"tail is {tail!r}", "give how many of the last lines, or None for all")
        for entry in self._follow(LogQuery(follow=follow, tail=tail, beats=follow), deadline):
            if entry["type"] == "line":
                yield RunLine(entry["id"], entry["time"], entry["stream"], entry["text"])

    def metrics(self) -> dict[str, float]:
        """Return the last value of each metric that its jobs have reported; NaN where it is no number."""
        return {metric["name"]: _read_number(metric["last"]) for metric in self.view()["metrics"]}

    def curve(self, metric: str) -> list[MetricPoint]:
        """Return the values of a metric over time, in the order in which they were reported, as at most 256 points.

        Raises:
            NotFound: it has not reported such a metric.
        """
        history = self._ask(lambda client: client.get_metric_history(self.id, metric))
        return [
            MetricPoint(
                bucket["last_step"], bucket["mean"], bucket["last_at"], bucket["count"], bucket["min"], bucket["max"]
            )
            for bucket in history["buckets"]
        ]

    def results(self, where: str | Sequence[str] = (), sort: str = "") -> Results:
        """Return its results, or those of all its experiments: `.to_pandas()` makes a DataFrame."""
        from riseml.python_api.results import load_results

        return load_results(self.id, where=where, sort=sort, program=self.program)

    def returned(self) -> Any:
        """Return what the function returned that `riseml.submit` has called; of `riseml.map`, a list of all calls.

        Raises:
            NotFound: it has not ended well, or it ran no function.
        """
        view = self.view()
        runs = [Run(self.program, part["id"]) for part in view["experiments"]] or [self]
        values = [json.loads(run.output.read_text(RESULT_FILE)) for run in runs]
        return values if view["experiments"] else values[0]

    def kill(self) -> Run:
        """Kill it, and return it before its jobs have ended; `wait(check=False)` waits for that."""
        self._ask(lambda client: client.kill_experiment(self.id))
        return self

    @add_hints()
    def rerun(
        self,
        parameters: Mapping[str, object] | None = None,
        *,
        settings: Mapping[str, object] | None = None,
        allow_env: Sequence[str] = (),
        message: str | None = None,
    ) -> Run:
        """Run it again, with its original code, environment and data, and return the new run.

        Raises:
            Refused: a part of the run is no longer available, or a variable was not allowed.
        """
        from riseml.python_api.reruns import start_rerun

        return Run(self.program, start_rerun(self.program, self.id, (parameters, settings), allow_env, message))

    @add_hints()
    def exec(self, command: Sequence[str], job: str | None = None, *, stdin: bytes = b"") -> CommandResult:
        """Run a command in a job that runs, beside its program, and return what it printed.

        Args:
            command: words; no shell reads them.
            job: `worker.1`; None: the only job, or the first one.
            stdin: what the command reads.

        Raises:
            Conflict: the job does not run.
        """
        from riseml.python_api.commands_in_jobs import run_command

        if isinstance(command, str) or not command:
            raise UsageError("exec takes a list of words", 'write exec(["nvidia-smi"]), or exec(["sh", "-c", "..."])')
        name = self._choose_job(job)
        with self.program.connect() as client:
            return CommandResult(*run_command(client.address, name, tuple(command), stdin))

    @add_hints()
    def forward(self, port: int, job: str | None = None, *, local: int = 0) -> Forwarding:
        """Pass connections to a port of this machine on to a port of a job, until the `with` statement ends.

        Example:
            with run.forward(6006) as forwarding:
                urlopen(forwarding.url)
        """
        from riseml.python_api.forwarding import Forwarding

        numbers = all(isinstance(number, int) and 0 <= number < 65536 for number in (port, local))
        if not numbers or port == 0:
            raise UsageError("a port is a number from 1 to 65535", "write forward(6006)")
        with self.program.connect() as client:
            return Forwarding(client.address, self._choose_job(job), port, local)

    @add_hints()
    def annotate(self, *, name: str | None = None, note: str | None = None, tags: Sequence[str] = ()) -> Run:
        """Give it a name or a note, and add tags; an empty text removes a name or a note."""
        if isinstance(tags, str):
            raise UsageError("tags is a text", f'write annotate(tags=["{tags}"])')
        change: wire.AnnotationChange = {}
        if name is not None:
            change["name"] = name
        if note is not None:
            change["note"] = note
        if tags:
            change["add_tags"] = list(tags)
        self._ask(lambda client: client.change_annotation(self.id, change))
        return self

    def _choose_job(self, job: str | None) -> str:
        names = [each.name for each in self.jobs if each.name != str(BUILD)]
        if job is not None and job not in names:
            raise NotFound(f"experiment {self.id} has no job {job!r}", f"it has {', '.join(names) or 'no job yet'}")
        if not names:
            raise Conflict(f"experiment {self.id} has no job yet")
        return f"{self.id}.{job or names[0]}"

    def _ask(self, question: Callable[[Client], Answer]) -> Answer:
        with self.program.connect() as client:
            return question(client)

    def _follow(self, query: LogQuery, deadline: Deadline) -> Iterator[wire.Entry]:
        """Yield the entries of its log until its end; a lost server is reached again.

        Raises:
            TimeoutError: the deadline has passed.
        """
        from riseml.submission.reconnection import make_reconnect

        with self.program.connect() as client:
            restore = make_reconnect(self.program, client)

            def reconnect(tries: int) -> bool | None:
                deadline.check()
                return restore(tries)

            for entry in client.stream_log(self.id, query, reconnect):
                if entry["type"] in ("ping", "line"):  # a job that prints all the time leaves no room for a heartbeat
                    deadline.check()
                if entry["type"] != "ping":
                    yield entry


class Deadline:
    """The moment until which a call waits.

    Args:
        timeout: seconds from now; None: never.
        subject: what it waits for.

    Raises:
        UsageError: the timeout is no number of seconds.
    """

    def __init__(self, timeout: float | None, subject: str) -> None:
        if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, int | float) or timeout < 0):
            raise UsageError(f"timeout is {timeout!r}", "give seconds, or None to wait as long as it takes")
        self._end = math.inf if timeout is None else time.monotonic() + timeout
        self._subject = subject
        self._timeout = timeout
        self._is_left = threading.Event()

    def leave(self) -> None:
        """Let the call end soon: its caller was cancelled."""
        self._is_left.set()

    def check(self) -> None:
        """Raise once the moment has come.

        Raises:
            TimeoutError: it has.
        """
        if self._is_left.is_set():
            raise TimeoutError(f"the wait for {self._subject} was cancelled")
        if time.monotonic() >= self._end:
            raise TimeoutError(f"{self._subject} has not ended within {self._timeout:g} s; it goes on")


def _make_failure(view: wire.ExperimentView) -> RisemlError:
    """Return the error of an experiment that did not end well, with the last lines of the job that failed."""
    message = f"experiment {view['id']} {view['state']}: {view['message']}"
    error = _ENDS[view["state"]](message, view["advice"] or f"`riseml show {view['id']}` shows more")
    if view["last_lines"]:
        error.add_note("\n".join([f"last lines of {view['id']}.{view['cause']}:", *view["last_lines"]]))
    return error


def _read_number(value: float | str) -> float:
    try:
        return float(value)
    except ValueError:  # a newer server may say something else
        return math.nan
