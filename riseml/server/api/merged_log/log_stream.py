"""The merged stream of an experiment: its changes of state and the lines of all its jobs, from a cursor on.

Successive lines are sent together, unless the client requests each line separately. This module reads the stores and
waits for changes; `stream_merge` decides on the order.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator

from riseml import wire
from riseml.base.names import name_for_reader
from riseml.base.records import dataclass
from riseml.base.states import TERMINAL, JobDuty, State
from riseml.model import Experiment, Job, JobKey
from riseml.server.api.merged_log import event_order
from riseml.server.api.merged_log.log_entries import LastLines, SetEnd, encode_entry, encode_ping, end_entry
from riseml.server.api.merged_log.set_states import load_set_states
from riseml.server.api.merged_log.stream_cursor import StreamPosition
from riseml.server.api.merged_log.stream_merge import FollowedLog, ReadTime, StreamMerge
from riseml.server.api.merged_log.stream_request import StreamRequest
from riseml.server.clock import now
from riseml.server.reconcile.notifier import Notifier, Subscription
from riseml.store.experiments import ExperimentStore
from riseml.store.logs.log_store import LogStore

_HEARTBEAT = 15.0  # seconds between two entries at most
_QUICK_READ = 16_384  # bytes of a log that are read in the event loop
_FEW_LOGS = 4  # experiments, at most, whose logs are read there
_SET_INTERVAL = 0.05  # seconds between two reads of a set, whose experiments change many times a second


async def stream_entries(
    request: StreamRequest, experiments: ExperimentStore, logs: LogStore, notifier: Notifier
) -> AsyncIterator[bytes]:
    """Yield NDJSON of `wire.Entry`: the entries of the store, then new ones, then one `end` after the last entry."""
    reader = _StreamReader(request, experiments, logs)
    heartbeat = min(request.heartbeat, _HEARTBEAT)
    with notifier.subscribe(request.experiments) as subscription:
        if reader.is_set:
            subscription.least_interval = _SET_INTERVAL
        if request.tail is not None:
            async for piece in _stream_tail(reader, request.tail, heartbeat):
                yield piece
        async for piece in _stream_new(reader, subscription, notifier, heartbeat, follow=request.follow):
            yield piece


async def _stream_new(
    reader: _StreamReader, subscription: Subscription, notifier: Notifier, heartbeat: float, *, follow: bool
) -> AsyncIterator[bytes]:
    """Yield entries until the last one, or without `follow` until there are no more, and pings while there are none."""
    sent_at = checked_at = time.monotonic()
    while True:
        reader.mark_stale(subscription.take_changed())
        read = reader.read_entries() if reader.is_quick() else await asyncio.to_thread(reader.read_entries)
        notifier.extend(subscription, reader.take_joined())
        piece = b"".join(map(encode_entry, read.entries))
        is_late = time.monotonic() - sent_at >= heartbeat  # it reads lines that the client did not request
        if piece or is_late:
            yield piece or reader.encode_ping()
            sent_at = time.monotonic()
        if read.is_last:
            yield encode_entry(await asyncio.to_thread(reader.make_end))
            return
        if not read.is_all:
            continue
        if not follow:
            return  # the client has all that there is
        patience = min(heartbeat, event_order.PATIENCE) if reader.merge.holds_event else heartbeat
        if not await subscription.wait_for_change(patience):
            sent_at = time.monotonic()
            if reader.merge.holds_event or sent_at - checked_at >= _HEARTBEAT:  # in case a notification was missed
                reader.mark_all_stale()
                checked_at = sent_at
            yield reader.encode_ping()


async def _stream_tail(reader: _StreamReader, count: int, heartbeat: float) -> AsyncIterator[bytes]:
    """Yield the last lines in the store. Some GiB take longer to read than a client waits, so pings come meanwhile."""
    reading = asyncio.create_task(asyncio.to_thread(_read_tail, reader, count))
    while not (await asyncio.wait((reading,), timeout=heartbeat))[0]:
        yield encode_ping("")  # nothing was sent: after a broken connection the client asks for all again
    for entry in reading.result():
        yield encode_entry(entry)
    yield reader.encode_ping()  # a client whose connection breaks now has a cursor


def _read_tail(reader: _StreamReader, count: int) -> list[wire.LineEntry | wire.LinesEntry]:
    """Return the last `count` lines of the store; the reader continues after them."""
    last = LastLines(count)
    while True:
        read = reader.read_entries()
        last.add_entries(read.entries)
        if read.is_all:
            return list(last.entries)


@dataclass(frozen=True, slots=True)
class _Read:
    """What one read has found."""

    entries: list[wire.Entry]  # in the order of their times
    is_all: bool  # another read would find nothing until something changes
    is_last: bool  # nothing more will follow


class _StreamReader:
    """Reads the experiments of one stream from their positions on."""

    def __init__(self, request: StreamRequest, experiments: ExperimentStore, logs: LogStore) -> None:
        self.merge = StreamMerge(request)
        self._request = request
        self._store = experiments
        self._logs = logs
        self._stale: frozenset[int] = frozenset()  # experiments whose records are loaded again before the next read
        self._grows = request.growth is not None  # further experiments may follow
        self._joined: list[int] = []  # keys of the experiments that joined the stream since `take_joined`

    @property
    def is_set(self) -> bool:
        """True for the stream of several experiments, or of one to which others may come."""
        return len(self._request.experiments) > 1 or self._request.growth is not None

    def take_joined(self) -> list[int]:
        """Return the keys of the experiments that joined the stream since the last call."""
        joined, self._joined = self._joined, []
        return joined

    def mark_stale(self, changed: frozenset[int]) -> None:
        """Load the records of these experiments again before the next read."""
        self._stale |= changed

    def mark_all_stale(self) -> None:
        """Load the records of all experiments again before the next read."""
        self._stale = frozenset(followed.identity for followed in self.merge.followed)

    def is_quick(self) -> bool:
        """Return True when a read needs no database, and only some kilobytes that another thread has just written:
        switching to another thread and back would take longer than such a read.
        """
        unfinished = self.merge.unfinished
        return (
            0 < len(unfinished) <= _FEW_LOGS
            and not self._stale
            and sum(self._count_unread(followed) for followed in unfinished) <= _QUICK_READ
        )

    def read_entries(self) -> _Read:
        """Read on, and return the next entries as far as they are there."""
        self._load_records()
        followed_logs = self.merge.unfinished
        # before the logs are read
        is_over = not self._grows and all(self._is_over(followed.record) for followed in followed_logs)
        before = [followed.position for followed in followed_logs]
        for followed in followed_logs:
            self._read_on(followed)
        entries = list(self.merge.merge(ReadTime(time.monotonic(), now())))
        is_all = before == [followed.position for followed in followed_logs]
        is_last = is_all and is_over and not self.merge.holds_event
        if is_last and self._request.growth is not None and self.merge.set_states is not None:
            end = self.merge.set_states.note_end()
            entries += [] if end is None else [{**end, "cursor": self.merge.cursor()}]
        if not is_over and not self.merge.holds_event and not any(map(self._count_unread, followed_logs)):
            is_all = True
        self.merge.unfinished = [followed for followed in followed_logs if not self._has_sent_all(followed)]
        return _Read(entries, is_all, is_last)

    def make_end(self) -> wire.EndEntry:
        """Return the entry after the last one."""
        members = tuple(followed.record for followed in self.merge.followed)
        growth = self._request.growth
        message = "" if growth is None else growth.describe_end(members)
        end = SetEnd(message, None if growth is None else growth.find_failure(), self._request.reader)
        return end_entry(self._request.canonical_id, members, self.merge.cursor(), end)

    def encode_ping(self) -> bytes:
        """Return an entry that only names what was read."""
        self.merge.sent_cursor = self.merge.cursor()
        return encode_ping(self.merge.sent_cursor)

    def _has_sent_all(self, followed: FollowedLog) -> bool:
        is_empty = not followed.events and not followed.blocks
        return followed.record.closed and is_empty and not self._count_unread(followed)

    def _read_on(self, followed: FollowedLog) -> None:
        """Read more of a log of which everything was sent."""
        if not followed.blocks:
            position = followed.read_end
            followed.add_blocks(*self._logs.read_blocks(followed.identity, position, reports=self._request.reports))

    def _count_unread(self, followed: FollowedLog) -> int:
        """Return how many bytes of a log were not read yet."""
        return self._logs.log_size(followed.identity) - followed.read_end.offset

    def _load_records(self) -> None:
        """Load the records that may have changed; at the first read all of them."""
        if not self.merge.followed:
            self._load_all()
        else:
            self._load_stale()
        if self._grows and self._stale:
            self._load_growth()
        self._stale = frozenset()

    def _load_all(self) -> None:
        pairs = zip(self._request.experiments, self._request.positions, strict=True)
        self.merge.followed = [self._load_followed(*pair) for pair in pairs]
        self.merge.unfinished = list(self.merge.followed)
        if self.merge.followed[0].record.set_id is not None and self._request.canonical_id.sub is None:
            sent = {followed.identity: followed.position.event for followed in self.merge.followed}
            first = self.merge.followed[0].record
            reader = self._request.reader or first.owner.user
            name = name_for_reader(reader, first.owner.user, first.number)
            self.merge.set_states = load_set_states(name, sent, self._store, goes_on=self._grows)

    def _load_stale(self) -> None:
        for followed in self.merge.unfinished:
            if followed.identity in self._stale:
                fresh = self._load_followed(followed.identity, followed.position)
                followed.record = fresh.record
                followed.events = fresh.events
                followed.ends = fresh.ends

    def _load_growth(self) -> None:
        """Let the experiments join that a search has made."""
        growth = self._request.growth
        self._grows = growth is not None and growth.goes_on()
        count = len(self.merge.followed)
        for identity in () if growth is None else growth.list_members(count):
            followed = self._load_followed(identity, StreamPosition())
            self.merge.followed.append(followed)
            self.merge.unfinished.append(followed)
            self._joined.append(identity)
            if self.merge.set_states is not None:
                self.merge.set_states.add_member(identity)
        if self.merge.set_states is not None:
            self.merge.set_states.goes_on = self._grows
            self.merge.set_states.failure = None if growth is None or self._grows else growth.find_failure()

    def _load_followed(self, identity: int, position: StreamPosition) -> FollowedLog:
        # read the record first: the lines before its close are in the log already
        record = self._store.get_record(identity)
        events = deque(self._store.read_events(identity, position.event))
        return FollowedLog(
            identity, position, record, events, self._logs.find_job_ends(identity), position.log_position
        )

    def _is_over(self, experiment: Experiment) -> bool:
        """Return True when the store will get no further entries of an experiment."""
        if experiment.closed or self._request.closed or experiment.state not in TERMINAL:
            return experiment.closed
        return all(
            job.state is State.FINISHED if job.part is JobDuty.PREPARES else self._has_complete_log(experiment, job)
            for job in experiment.jobs
        )

    def _has_complete_log(self, experiment: Experiment, job: Job) -> bool:
        """Return True when the job ran, and the logs of all its attempts are complete: then the job has ended."""
        attempts = range(1, job.attempt + 1)
        return job.started_at is not None and all(
            self._logs.is_job_finished(JobKey(experiment.id, job.name, attempt)) for attempt in attempts
        )
