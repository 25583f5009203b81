"""The entries of the merged stream as they cross the wire: one JSON object per line (NDJSON)."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Literal

from riseml import wire
from riseml.base.names import CanonicalId, JobName, name_for_reader
from riseml.base.records import dataclass
from riseml.base.states import SENTENCES, Reason, State
from riseml.control.rollup import describe_set_end, find_failed_job, roll_up_set
from riseml.model import Experiment
from riseml.server.api.views.metric_views import show_number
from riseml.server.api.views.record_views import exit_code_of, find_exit_code, name_cause
from riseml.store.experiments import StateEvent
from riseml.store.logs.blocks import LogBlock, OutputLine
from riseml.store.metrics.metric_tally import MetricReport

OutputEntry = wire.LineEntry | wire.LinesEntry
_BEGINNINGS = frozenset({State.CREATED, State.RUNNING})
"""States in which the log also names an experiment's point within its set."""
_TO_JSON = json.JSONEncoder(ensure_ascii=False).encode
_STREAMS: dict[int, Literal["stdout", "stderr", "engine"]] = {1: "stdout", 2: "stderr", 3: "engine"}


def encode_entry(entry: wire.Entry) -> bytes:
    """Return an entry as one line of JSON."""
    return _TO_JSON(entry).encode() + b"\n"


def encode_ping(cursor: str) -> bytes:
    """Return an entry that only shows that the stream goes on, and from where."""
    return encode_entry({"type": "ping", "cursor": cursor})


def format_moment(at: datetime) -> str:
    """Return a moment as the engine writes timestamps, so that both compare as texts."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"


def state_entry(experiment: Experiment, event: StateEvent, cursor: str, reader: str | None = None) -> wire.StateEntry:
    """Return the entry of one change of state."""
    return {
        "type": "state",
        "cursor": cursor,
        "id": _name_source(experiment, event.job, reader),
        "time": format_moment(event.at),
        "state": event.state.value,
        "reason": event.reason.value,
        "sentence": SENTENCES[event.reason],
        "message": event.message or _name_point(experiment, event),
        "exit_code": event.exit_code,
    }


def _name_point(experiment: Experiment, event: StateEvent) -> str:
    """Return the parameters of a member of a set where it begins: `lr=0.01, epochs=3`; else nothing."""
    if experiment.sub is None or event.job is not None or event.state not in _BEGINNINGS:
        return ""
    return ", ".join(f"{name}={value}" for name, value in experiment.plan.parameters)


def name_stream(number: int) -> Literal["stdout", "stderr", "engine"]:
    """Return the name of a stream of a log."""
    return _STREAMS.get(number, "engine")


def line_entry(experiment: Experiment, line: OutputLine, cursor: str, reader: str | None = None) -> wire.LineEntry:
    """Return the entry of one line of output."""
    return {
        "type": "line",
        "cursor": cursor,
        "id": _name_source(experiment, line.job, reader),
        "time": line.at,
        "stream": name_stream(line.stream),
        "text": line.text.decode("utf-8", "replace"),
    }


def lines_entry(experiment: Experiment, block: LogBlock, cursor: str, reader: str | None = None) -> wire.LinesEntry:
    """Return the entry of lines that follow each other."""
    return {
        "type": "lines",
        "cursor": cursor,
        "id": _name_source(experiment, block.job, reader),
        "stream": name_stream(block.stream),
        "text": block.data.decode("utf-8", "replace"),
    }


def report_entry(
    experiment: Experiment, report: MetricReport, cursor: str, reader: str | None = None
) -> wire.ReportEntry:
    """Return the entry of one report of a job."""
    return {
        "type": "report",
        "cursor": cursor,
        "id": _name_source(experiment, report.job, reader),
        "time": report.at,
        "step": report.step,
        "values": {name: show_number(value) for name, value in report.values},
    }


@dataclass(frozen=True, slots=True)
class SetEnd:
    """What a search adds to the end of its set, and who reads of it."""

    message: str = ""  # the summary; empty: there is no search
    failure: Reason | None = None  # why it has failed; None: it has not
    reader: str | None = None  # the user of the request; None: that of the experiments


NO_SEARCH = SetEnd()


def end_entry(
    canonical_id: CanonicalId, experiments: tuple[Experiment, ...], cursor: str, end: SetEnd = NO_SEARCH
) -> wire.EndEntry:
    """Return the last entry: the end of the experiment or the set. `end` is what a search adds to the end of a set."""
    first = experiments[0]
    owner = first.owner.user
    reader = owner if end.reader is None else end.reader
    is_set = first.set_id is not None and canonical_id.sub is None
    state, reason = roll_up_set(experiments, failure=end.failure) if is_set else (first.state, first.reason)
    return {
        "type": "end",
        "cursor": cursor,
        "id": name_for_reader(reader, owner, canonical_id.number, canonical_id.sub),
        "state": state.value,
        "exit_code": find_exit_code(state, experiments) if is_set else exit_code_of(first),
        "reason": reason.value,
        "message": end.message or describe_set_end(experiments) if is_set else first.message or SENTENCES[reason],
        "cause": name_cause(state, experiments) if is_set else find_failed_job(first),
    }


class LastLines:
    """Keeps the entries with the last lines of output, at most `most` lines."""

    def __init__(self, most: int) -> None:
        self.entries: deque[OutputEntry] = deque()
        self._most = most
        self._lines = 0

    def add_entries(self, entries: Iterable[wire.Entry]) -> None:
        """Take the next entries; changes of state are left out."""
        for entry in entries:
            if entry["type"] == "line" or entry["type"] == "lines":
                self.entries.append(entry)
                self._lines += _count_lines(entry)
                while self._lines > self._most:
                    self._drop_first()

    def _drop_first(self) -> None:
        """Drop the first entry, or the surplus of its lines."""
        first = self.entries.popleft()
        self._lines -= _count_lines(first)
        if first["type"] == "lines" and self._lines < self._most:
            text = "\n".join(first["text"].split("\n")[self._lines - self._most - 1 :])
            self.entries.appendleft({**first, "text": text})
            self._lines = self._most


def _count_lines(entry: OutputEntry) -> int:
    return entry["text"].count("\n") if entry["type"] == "lines" else 1


def _name_source(experiment: Experiment, job: JobName | None, reader: str | None) -> str:
    owner = experiment.owner.user
    name = name_for_reader(owner if reader is None else reader, owner, experiment.number, experiment.sub)
    return name if job is None else f"{name}.{job}"


def split_at(block: LogBlock, moment: str) -> tuple[LogBlock, ...]:
    """Return the lines before a moment, and the others if there are any; the first line counts as before it."""
    before = next((number for number, at in enumerate(block.timestamps()) if number and at >= moment), 0)
    return block.split(before) if before else (block,)
