"""The merged stream of an experiment: its changes of state and every job's lines, from a cursor on.

A cursor is `<event id>.<log offset>[.<lines behind it>]` for each experiment of the stream, joined by commas: what it
names has been sent. Lines stay together as the log has them, unless the reader wants each of them alone.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from riseml import wire
from riseml.control.rollup import find_failed_job, roll_up_set
from riseml.errors import UsageError
from riseml.model import Experiment, Job, JobKey
from riseml.names import CanonicalId, JobName, experiment_name
from riseml.server.api.views import exit_code_of
from riseml.server.clock import now
from riseml.server.reconcile.notifier import Notifier
from riseml.states import SENTENCES, TERMINAL, Part, Reason, State
from riseml.store.experiments import ExperimentStore, StateEvent
from riseml.store.logs.blocks import LogBlock, LogLine, ReadPosition
from riseml.store.logs.log_store import LogStore

_MOST_EVENTS = 2**31  # what every store can count
_MOST_BYTES = 2**43  # what every file system can seek
_HEARTBEAT = 15.0  # seconds
_PATIENCE = 5.0  # seconds without any line that the end of a job waits for its last ones
_OLD = timedelta(minutes=1)
_WITHOUT_LINES = frozenset({Reason.CACHED, Reason.START_FAILED, Reason.VANISHED, Reason.HOST_LOST, Reason.INTERNAL})
"""Why a job ends that has no log, or none that anybody can still read."""
_TO_JSON = json.JSONEncoder(ensure_ascii=False).encode
_STREAMS: dict[int, Literal["stdout", "stderr", "engine"]] = {1: "stdout", 2: "stderr", 3: "engine"}


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """What the stream has sent of one experiment."""

    event: int = 0  # id of the last event that was sent
    offset: int = 0  # where to read the log file on, in bytes
    lines_given: int = 0  # lines behind `offset` that were sent

    @property
    def mark(self) -> ReadPosition:
        """Where its log is read on."""
        return ReadPosition(self.offset, self.lines_given)

    def at(self, mark: ReadPosition) -> StreamPosition:
        """The same with its log read up to `mark`."""
        return StreamPosition(self.event, mark.offset, mark.lines_given)

    def __str__(self) -> str:
        return f"{self.event}.{self.offset}.{self.lines_given}" if self.lines_given else f"{self.event}.{self.offset}"


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody wants to read. `since`: nothing older. `tail`: of what is there already, the last lines that jobs
    printed, at most so many, and no change of state.

    `batch`: lines that stand together may come in one entry. `closed`: the end comes once nothing of it is left;
    without, once nothing of it runs and all has been said, while its containers are still being removed.
    """

    wanted: CanonicalId
    experiments: tuple[int, ...]
    follow: bool
    positions: tuple[StreamPosition, ...]
    tail: int | None = None
    since: datetime | None = None
    batch: bool = False
    closed: bool = True


def parse_cursor(text: str, count: int) -> tuple[StreamPosition, ...]:
    """The positions that a cursor names; from the beginning without one.

    Raises:
        UsageError: it is no cursor of such a stream.
    """
    if not text:
        return (StreamPosition(),) * count
    try:
        positions = tuple(StreamPosition(*map(int, part.split("."))) for part in text.split(","))
    except (ValueError, TypeError):
        positions = ()
    bounds = (_MOST_EVENTS, _MOST_BYTES, _MOST_BYTES)
    sound = all(0 <= part < most for one in positions for part, most in zip(astuple(one), bounds, strict=True))
    if len(positions) != count or not sound:
        raise UsageError(f"{text[:80]!r} is no cursor of this log", "leave it out to read from the beginning")
    return positions


async def stream(
    request: Request, experiments: ExperimentStore, logs: LogStore, notifier: Notifier
) -> AsyncIterator[bytes]:
    """NDJSON of `wire.Entry`: what is there, then what comes, then one `end` when everything has come."""
    reader = _Reader(request, experiments, logs)
    with notifier.subscribe(request.experiments) as bell:
        if request.tail is not None:
            for entry in await asyncio.to_thread(_last, reader, request.tail):
                yield _encode(entry)
            yield _encode({"type": "ping", "cursor": reader.cursor()})  # who is cut off now reads on behind the tail
        while not reader.complete:
            reader.forget(bell.take_changed())
            entries = await asyncio.to_thread(reader.read)
            if entries:
                yield b"".join(map(_encode, entries))
            elif reader.idle and not request.follow:
                return
            elif (
                reader.idle
                and not reader.complete
                and not await bell.wait_for_change(_PATIENCE if reader.holds else _HEARTBEAT)
            ):
                reader.forget(frozenset(request.experiments))  # whatever was missed
                yield _encode({"type": "ping", "cursor": reader.cursor()})
    yield _encode(reader.end())


class _Reader:
    """Reads on from its positions.

    `idle`: the last read found nothing new. `complete`: and nothing more will ever come.
    """

    def __init__(self, request: Request, experiments: ExperimentStore, logs: LogStore) -> None:
        self.complete = False
        self.idle = False
        self._request = request
        self._store = experiments
        self._logs = logs
        # without its Z, so that it is not behind the fractions of its own second
        self._since = "" if request.since is None else _moment(request.since)[:-1]
        self._positions = list(request.positions)
        self._stale = frozenset(request.experiments)
        self._experiments: dict[int, Experiment] = {}  # these three by their place in the request
        self._events: dict[int, deque[StateEvent]] = {}  # those that have not been sent
        self._ends: dict[int, Mapping[tuple[JobName, int], int]] = {}
        self._held: dict[int, tuple[int, float]] = {}  # an event that waits, and since when, on the monotonic clock

    @property
    def holds(self) -> bool:
        """Whether something that happened is not said yet, since lines that come before it may still come."""
        return any(self._events.values())

    def forget(self, changed: frozenset[int]) -> None:
        """Of these experiments something may have changed beside the logs."""
        self._stale |= changed

    def read(self) -> list[wire.Entry]:
        """The next entries; of each experiment in the order of their times, as far as they are there."""
        for index, identity in enumerate(self._request.experiments):
            if identity in self._stale:
                # the record comes first: what closed an experiment was written before
                self._experiments[index] = self._store.get_experiment(identity).experiment
                events = self._store.read_events(identity, self._positions[index].event)
                self._events[index] = deque(events)
                self._ends[index] = self._logs.find_job_ends(identity)
        self._stale = frozenset()
        over = all(self._is_over(experiment) for experiment in self._experiments.values())
        before = list(self._positions)
        entries = [entry for index, experiment in self._experiments.items() for entry in self._read(index, experiment)]
        self.idle = before == self._positions
        self.complete = self.idle and over and not self.holds
        return entries

    def cursor(self) -> str:
        """What has been read."""
        return ",".join(map(str, self._positions))

    def end(self) -> wire.EndEntry:
        """The last entry."""
        first = self._experiments[0]
        is_set = first.set_id is not None and self._request.wanted.sub is None
        state, reason = roll_up_set(tuple(self._experiments.values())) if is_set else (first.state, first.reason)
        wanted = self._request.wanted
        return {
            "type": "end",
            "cursor": self.cursor(),
            "id": experiment_name(wanted.number, wanted.sub),
            "state": state.value,
            "exit_code": None if is_set else exit_code_of(first),
            "reason": reason.value,
            "message": SENTENCES[reason] if is_set or not first.message else first.message,
            "cause": None if is_set else find_failed_job(first),
        }

    def _read(self, index: int, experiment: Experiment) -> Iterator[wire.Entry]:
        """Two sources merged by time, each in its own order, so that a cursor can name what was sent of both.

        Clocks and pipes may disagree about which was first, a job's end or its last line: the line is.
        """
        position = self._positions[index]
        events = self._events[index]
        found, end = self._logs.read_blocks(experiment.id, position.mark)
        exhausted = end == position.mark
        blocks = deque(found)
        while events or blocks:
            due = bool(events) and self._is_due(index, experiment, events[0], exhausted=exhausted)
            if due and (not blocks or _moment(events[0].at) <= blocks[0].first_at):
                event = events.popleft()
                self._positions[index] = position = replace(position, event=event.id)
                if self._wants(event.job) and _moment(event.at) >= self._since:
                    yield _state_entry(experiment, event, self.cursor())
                continue
            if not blocks:
                break
            block = blocks.popleft()
            if due:
                block, *rest = _split_at(block, _moment(events[0].at))
                blocks.extendleft(rest)
            if self._request.wanted.names(block.job):
                yield from self._show(index, experiment, block)
            self._positions[index] = position = position.at(block.end)
        self._positions[index] = position.at(end)

    def _show(self, index: int, experiment: Experiment, block: LogBlock) -> Iterator[wire.LineEntry | wire.LinesEntry]:
        """Lines as they were asked for: together, or each with its own cursor."""
        position = self._positions[index]
        if self._request.batch and not self._since:
            self._positions[index] = position.at(block.end)
            yield _lines_entry(experiment, block, self.cursor())
            return
        for line in block.lines():
            self._positions[index] = position.at(line.end)
            if line.at >= self._since:
                yield _line_entry(experiment, line, self.cursor())

    def _is_due(self, index: int, experiment: Experiment, event: StateEvent, *, exhausted: bool) -> bool:
        """Whether everything was sent that comes before it: the end of a job waits for the job's last line.

        `exhausted`: there is nothing to send but events. Nobody waits for ever for a line that is lost with its host.
        """
        if event.job is None or event.state not in TERMINAL:
            return True
        end = self._ends[index].get((event.job, event.attempt))
        if end is not None and self._positions[index].offset >= end:
            return True
        if experiment.closed:
            return end is None or exhausted
        if end is None and (event.reason in _WITHOUT_LINES or _never_ran(experiment, event) or _is_old(event)):
            return True
        return self._has_waited(index, event, exhausted=exhausted)

    def _has_waited(self, index: int, event: StateEvent, *, exhausted: bool) -> bool:
        """Whether nothing has come for long enough while it waited."""
        known, since = self._held.get(index, (0, 0.0))
        if not exhausted or known != event.id:
            since = time.monotonic()
            self._held[index] = event.id, since
        return time.monotonic() - since >= _PATIENCE

    def _is_over(self, experiment: Experiment) -> bool:
        """True when nothing more will come: asked before the log is read."""
        if experiment.closed or self._request.closed or experiment.state not in TERMINAL:
            return experiment.closed
        return all(
            job.state is State.FINISHED if job.part is Part.PREPARES else self._is_said(experiment, job)
            for job in experiment.jobs
        )

    def _is_said(self, experiment: Experiment, job: Job) -> bool:
        """The job ran, and the logs of all its attempts are complete, which they are only when it has ended."""
        logs = self._logs
        attempts = range(1, job.attempt + 1)
        return job.started_at is not None and all(
            logs.is_job_finished(JobKey(experiment.id, job.name, attempt)) for attempt in attempts
        )

    def _wants(self, job: JobName | None) -> bool:
        return self._request.wanted.job is None if job is None else self._request.wanted.names(job)


def _is_old(event: StateEvent) -> bool:
    """Whether what was printed before it has long been read, if anybody can."""
    return now() - event.at >= _OLD


def _never_ran(experiment: Experiment, event: StateEvent) -> bool:
    """Whether the attempt that ended is the last one, and had not begun."""
    return any(
        job.name == event.job
        and job.attempt == event.attempt
        and job.part is not Part.PREPARES
        and job.started_at is None
        for job in experiment.jobs
    )


def _last(reader: _Reader, tail: int) -> list[wire.LineEntry | wire.LinesEntry]:
    """The last `tail` lines of what is there now; the reader goes on behind them."""
    kept: deque[wire.LineEntry | wire.LinesEntry] = deque()
    lines = 0
    while not reader.idle:
        for entry in reader.read():
            if entry["type"] not in ("line", "lines"):
                continue
            kept.append(entry)
            lines += _count(entry)
            while lines > tail:
                first = kept.popleft()
                lines -= _count(first)
                if first["type"] == "lines" and lines < tail:
                    kept.appendleft({**first, "text": _last_rows(first["text"], tail - lines)})
                    lines = tail
    return list(kept)


def _count(entry: wire.LineEntry | wire.LinesEntry) -> int:
    """How many lines of output it has."""
    return entry["text"].count("\n") if entry["type"] == "lines" else 1


def _last_rows(text: str, count: int) -> str:
    return "\n".join(text.split("\n")[-count - 1 :])


def _split_at(block: LogBlock, moment: str) -> tuple[LogBlock, ...]:
    """Its lines before a moment, and the others, if there are any; the first one counts as before it."""
    before = next((number for number, at in enumerate(block.timestamps()) if number and at >= moment), 0)
    return block.split(before) if before else (block,)


def _state_entry(experiment: Experiment, event: StateEvent, cursor: str) -> wire.StateEntry:
    return {
        "type": "state",
        "cursor": cursor,
        "id": _id(experiment, event.job),
        "time": _moment(event.at),
        "state": event.state.value,
        "reason": event.reason.value,
        "sentence": SENTENCES[event.reason],
        "message": event.message,
        "exit_code": event.exit_code,
    }


def _line_entry(experiment: Experiment, line: LogLine, cursor: str) -> wire.LineEntry:
    return {
        "type": "line",
        "cursor": cursor,
        "id": _id(experiment, line.job),
        "time": line.at,
        "stream": _STREAMS.get(line.stream, "engine"),
        "text": line.text.decode("utf-8", "replace"),
    }


def _lines_entry(experiment: Experiment, block: LogBlock, cursor: str) -> wire.LinesEntry:
    return {
        "type": "lines",
        "cursor": cursor,
        "id": _id(experiment, block.job),
        "stream": _STREAMS.get(block.stream, "engine"),
        "text": block.data.decode("utf-8", "replace"),
    }


def _id(experiment: Experiment, job: JobName | None) -> str:
    name = experiment_name(experiment.number, experiment.sub)
    return name if job is None else f"{name}.{job}"


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"


def _encode(entry: wire.Entry) -> bytes:
    return _TO_JSON(entry).encode() + b"\n"
