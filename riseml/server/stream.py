"""The merged stream of an experiment: its changes of state and every job's lines, from a cursor on.

A cursor is `<event id>.<log offset>` for each experiment of the stream, joined by commas: what it names has been sent.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from riseml import wire
from riseml.control.rollup import cause_of, roll_up_set
from riseml.errors import UsageError
from riseml.model import Experiment
from riseml.names import CanonicalId, JobName, experiment_name
from riseml.server.act import Stores
from riseml.server.news import News
from riseml.server.views import exit_code_of, show_time
from riseml.states import SENTENCES
from riseml.store.experiments import Event
from riseml.store.logs import Line

_MOST_EVENTS = 2**31  # what every store can count
_MOST_BYTES = 2**43  # what every file system can seek
_HEARTBEAT = 15.0  # seconds
_STREAMS: dict[int, Literal["stdout", "stderr", "engine"]] = {1: "stdout", 2: "stderr", 3: "engine"}


@dataclass(frozen=True, slots=True)
class Position:
    """What of one experiment has been sent."""

    event: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody wants to read. `tail`: at most so many lines of what is there already; `since`: nothing older."""

    wanted: CanonicalId
    experiments: tuple[int, ...]
    follow: bool
    positions: tuple[Position, ...]
    tail: int | None = None
    since: datetime | None = None


def parse_cursor(text: str, count: int) -> tuple[Position, ...]:
    """The positions that a cursor names; from the beginning without one.

    Raises:
        UsageError: it is no cursor of such a stream.
    """
    if not text:
        return (Position(),) * count
    try:
        positions = tuple(Position(*map(int, part.split("."))) for part in text.split(","))
    except (ValueError, TypeError):
        positions = ()
    sound = all(0 <= one.event < _MOST_EVENTS and 0 <= one.offset < _MOST_BYTES for one in positions)
    if len(positions) != count or not sound:
        raise UsageError(f"{text[:80]!r} is no cursor of this log", "leave it out to read from the beginning")
    return positions


async def stream(request: Request, stores: Stores, news: News) -> AsyncIterator[bytes]:
    """NDJSON of `wire.Entry`: what is there, then what comes, then one `end` when everything has come."""
    reader = _Reader(request, stores)
    with news.subscribe(request.experiments) as fresh:
        for entry in await asyncio.to_thread(_last, reader, request.tail):
            yield _encode(entry)
        while not reader.complete:
            fresh.clear()
            entries = await asyncio.to_thread(reader.read)
            if entries:
                yield b"".join(map(_encode, entries))
            elif reader.idle and not request.follow:
                return
            elif reader.idle and not reader.complete:
                try:
                    await asyncio.wait_for(fresh.wait(), _HEARTBEAT)
                except TimeoutError:
                    yield _encode({"type": "ping", "cursor": reader.cursor()})
    yield _encode(reader.end())


class _Reader:
    """Reads on from its positions.

    `idle`: the last read found nothing new. `complete`: and nothing more will ever come.
    """

    def __init__(self, request: Request, stores: Stores) -> None:
        self.complete = False
        self.idle = False
        self._request = request
        self._stores = stores
        self._since = show_time(request.since) or ""
        self._positions = list(request.positions)
        self._experiments: list[Experiment] = []

    def read(self) -> list[wire.Entry]:
        """The next entries; of each experiment in the order of their times, as far as they are there."""
        # the records come first: what closed an experiment was written before
        self._experiments = [
            self._stores.experiments.get(identity).experiment for identity in self._request.experiments
        ]
        before = list(self._positions)
        entries = [
            entry for index, experiment in enumerate(self._experiments) for entry in self._read(index, experiment)
        ]
        self.idle = before == self._positions
        self.complete = self.idle and all(experiment.closed for experiment in self._experiments)
        return entries

    def cursor(self) -> str:
        """What has been read."""
        return ",".join(f"{position.event}.{position.offset}" for position in self._positions)

    def end(self) -> wire.EndEntry:
        """The last entry."""
        first = self._experiments[0]
        is_set = first.set_id is not None and self._request.wanted.sub is None
        state, reason = roll_up_set(self._experiments) if is_set else (first.state, first.reason)
        wanted = self._request.wanted
        return {
            "type": "end",
            "cursor": self.cursor(),
            "id": experiment_name(wanted.number, wanted.sub),
            "state": state.value,
            "exit_code": None if is_set else exit_code_of(first),
            "reason": reason.value,
            "message": SENTENCES[reason] if is_set or not first.message else first.message,
            "cause": None if is_set else cause_of(first),
        }

    def _read(self, index: int, experiment: Experiment) -> Iterator[wire.Entry]:
        """Two sources merged by time, each in its own order, so that a cursor can name what was sent of both."""
        position = self._positions[index]
        events = deque(self._stores.experiments.read_events(experiment.id, position.event))
        found, offset = self._stores.logs.read(experiment.id, position.offset)
        lines = deque(found)
        while events or lines:
            if events and (not lines or _moment(events[0].at) <= lines[0].at):
                event = events.popleft()
                position = replace(position, event=event.id)
                entry: wire.StateEntry | wire.LineEntry = _state_entry(experiment, event)
                wanted = self._wants(event.job)
            else:
                line = lines.popleft()
                position = replace(position, offset=line.end)
                entry = _line_entry(experiment, line)
                wanted = self._request.wanted.names(line.job)
            self._positions[index] = position
            if wanted and entry["time"] >= self._since:
                entry["cursor"] = self.cursor()
                yield entry
        self._positions[index] = replace(position, offset=offset)

    def _wants(self, job: JobName | None) -> bool:
        return self._request.wanted.job is None if job is None else self._request.wanted.names(job)


def _last(reader: _Reader, tail: int | None) -> list[wire.Entry]:
    """What is there now, from the last `tail` lines on; nothing without a tail, for then all of it is sent."""
    kept: deque[wire.Entry] = deque()
    lines = 0
    while tail is not None and not reader.idle:
        for entry in reader.read():
            kept.append(entry)
            lines += entry["type"] == "line"
            while lines > tail:
                lines -= kept.popleft()["type"] == "line"
    return list(kept)


def _state_entry(experiment: Experiment, event: Event) -> wire.StateEntry:
    return {
        "type": "state",
        "cursor": "",
        "id": _id(experiment, event.job),
        "time": _moment(event.at),
        "state": event.state.value,
        "reason": event.reason.value,
        "sentence": SENTENCES[event.reason],
        "message": event.message,
        "exit_code": event.exit_code,
    }


def _line_entry(experiment: Experiment, line: Line) -> wire.LineEntry:
    return {
        "type": "line",
        "cursor": "",
        "id": _id(experiment, line.job),
        "time": line.at,
        "stream": _STREAMS.get(line.stream, "engine"),
        "text": line.text.decode("utf-8", "replace"),
    }


def _id(experiment: Experiment, job: JobName | None) -> str:
    name = experiment_name(experiment.number, experiment.sub)
    return name if job is None else f"{name}.{job}"


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"


def _encode(entry: wire.Entry) -> bytes:
    return json.dumps(entry, ensure_ascii=False).encode() + b"\n"
