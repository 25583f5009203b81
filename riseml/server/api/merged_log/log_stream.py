"""The merged stream of an experiment: its changes of state and the lines of all its jobs, from a cursor on.

Successive lines are sent together, unless the client requests each line separately.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import field, replace
from datetime import datetime

from riseml import wire
from riseml.base.names import JobName, experiment_name
from riseml.base.records import dataclass
from riseml.base.states import SENTENCES, TERMINAL, JobDuty, Reason, State
from riseml.control.rollup import describe_set_end, roll_up_set
from riseml.model import Experiment, Job, JobKey
from riseml.server.api.merged_log import log_gate
from riseml.server.api.merged_log.log_entries import (
    LastLines,
    encode_entry,
    encode_ping,
    end_entry,
    format_moment,
    line_entry,
    lines_entry,
    report_entry,
    split_at,
    state_entry,
)
from riseml.server.api.merged_log.log_gate import Gate, LogState, gate, has_started
from riseml.server.api.merged_log.stream_cursor import StreamPosition
from riseml.server.api.merged_log.stream_request import StreamRequest
from riseml.server.clock import now
from riseml.server.reconcile.notifier import Notifier, Subscription
from riseml.store.experiments import ExperimentStore, StateEvent
from riseml.store.logs.blocks import LogBlock, join_blocks
from riseml.store.logs.log_store import LogStore
from riseml.store.logs.read_position import ReadPosition
from riseml.store.metrics.metric_tally import read_reports

_HEARTBEAT = 15.0  # seconds between two entries at most
_QUICK_READ = 16_384  # bytes of a log that are read in the event loop
_FEW_LOGS = 4  # experiments, at most, whose logs are read there

_SET_STATES = (State.CREATED, State.BUILDING, State.PENDING, State.STARTING, State.RUNNING)
"""States of a set in the stream. A set never goes back from one of them, for example while one member ends and another
waits."""


async def stream_entries(
    request: StreamRequest, experiments: ExperimentStore, logs: LogStore, notifier: Notifier
) -> AsyncIterator[bytes]:
    """Yield NDJSON of `wire.Entry`: the entries of the store, then new ones, then one `end` after the last entry."""
    reader = _StreamReader(request, experiments, logs)
    heartbeat = min(request.heartbeat, _HEARTBEAT)
    with notifier.subscribe(request.experiments) as subscription:
        if request.tail is not None:
            async for piece in _stream_tail(reader, request.tail, heartbeat):
                yield piece
        async for piece in _stream_new(reader, subscription, notifier, heartbeat, follow=request.follow):
            yield piece
    if not reader.complete:
        return  # the client does not follow, and has all that there is
    members = reader.experiments
    message = "" if request.growth is None else await asyncio.to_thread(request.growth.describe_end, members)
    yield encode_entry(end_entry(request.canonical_id, members, reader.cursor(), message))


@dataclass(slots=True)
class FollowedLog:
    """One experiment of the stream: what was read but not sent, and what follows next."""

    identity: int  # key in the store
    position: StreamPosition  # the position up to which everything was sent
    record: Experiment
    events: deque[StateEvent]  # events that were not sent
    ends: Mapping[tuple[JobName, int], int]  # the offsets at which complete logs of jobs and attempts end
    read_end: ReadPosition  # the position up to which the log was read
    blocks: deque[LogBlock] = field(default_factory=deque)  # read, and not sent
    may_have_more: bool = False  # the last read found something, so that more may follow
    last_at: datetime | None = None  # the time of the last event that was sent
    waiting_event: int = 0  # id of the event that waits for lines
    waiting_since: float = 0.0  # on the monotonic clock
    # since when lines wait for the start of their job, on the monotonic clock; 0: no line waits
    held_since: float = 0.0

    @property
    def is_read_up(self) -> bool:
        """Return True when everything that was read has been sent, and another read may find more."""
        return self.may_have_more and not self.blocks

    def is_before(self, event: StateEvent, block: LogBlock) -> bool:
        """Return True when the next event comes before the next lines: it is older; or it, or a later event, says that
        the job of the lines runs; or it happened at the same moment as the event before it.
        """
        if format_moment(event.at) <= block.first_at or event.at == self.last_at:
            return True
        return any(
            unsent.state is State.RUNNING and unsent.job == block.job and unsent.attempt == 1 for unsent in self.events
        )

    def waits_for_start(self, block: LogBlock, moment: float) -> bool:
        """Return True while the store does not say yet that the job of the lines runs. The lines wait at most for the
        patience.
        """
        job = next((job for job in self.record.jobs if job.name == block.job), None)
        if job is None or job.part is JobDuty.PREPARES or job.attempt > 1 or job.state is not State.STARTING:
            self.held_since = 0.0
            return False
        self.held_since = self.held_since or moment
        return moment - self.held_since < log_gate.PATIENCE


@dataclass(frozen=True, slots=True, order=True)
class StreamHead:
    """The next part of an experiment's stream: an event or lines."""

    time: str
    is_event: bool = False  # False: lines
    until: str = ""  # when the next event happened; empty: no event


class SetStates:
    """Follows the state of a set through the events of its members, in the order in which the stream sends them.

    Args:
        number: of the set.
        members: keys of its experiments in the store.

    Example:
        states = SetStates(144, (7, 8))
        entry = states.note_event(7, event)  # None while the set stays in its state
    """

    def __init__(self, number: int, members: Iterable[int]) -> None:
        self._name = experiment_name(number, None)
        self._members = dict.fromkeys(members, _MemberState())
        self._counts = Counter(member.state for member in self._members.values())
        self._state: State | None = None  # the last state that was sent; None: no state was sent
        self._last: datetime | None = None  # when the last event happened
        self.goes_on = False  # a search may make further members

    def add_member(self, member: int) -> None:
        """Take a member that a search has made."""
        if member not in self._members:
            self._members[member] = _MemberState()
            self._counts[State.CREATED] += 1

    def note_end(self) -> wire.StateEntry | None:
        """Return the entry of a set whose search makes no further members, unless its end was sent before."""
        self.goes_on = False
        return None if self._last is None else self._tell_change(self._last)

    def note_event(self, member: int, event: StateEvent) -> wire.StateEntry | None:
        """Take an event of a member. Return the entry of the set without its cursor, if the set changes its state."""
        if event.job is not None:
            return None
        self._last = event.at
        before = self._members[member]
        has_run = event.state in (State.RUNNING, State.FINISHED)  # a short job ends before the server sees it run
        started_at = before.started_at or (event.at if has_run else None)
        self._members[member] = replace(before, state=event.state, reason=event.reason, started_at=started_at)
        if not self._recount(before.state, event.state) and self._state is not None:
            return None
        return self._tell_change(event.at)

    def _tell_change(self, moment: datetime) -> wire.StateEntry | None:
        """Return the entry of the set, if the state from its members differs from the one that was sent."""
        members = tuple(self._members.values())
        state, reason = roll_up_set(members, goes_on=self.goes_on)
        if state is self._state or (state not in TERMINAL and self._state in _SET_STATES[_SET_STATES.index(state) :]):
            return None
        self._state = state
        reason = Reason.RUNNING if state is State.RUNNING else reason
        return {
            "type": "state",
            "cursor": "",
            "id": self._name,
            "time": format_moment(moment),
            "state": state.value,
            "reason": reason.value,
            "sentence": SENTENCES[reason],
            "message": describe_set_end(members),
            "exit_code": None,
        }

    def _recount(self, before: State, after: State) -> bool:
        """Count a member that changed its state. Return True when the set of present states has changed."""
        self._counts[before] -= 1
        self._counts[after] += 1
        return self._counts[before] == 0 or self._counts[after] == 1


def load_set_states(
    number: int, sent: Mapping[int, int], store: ExperimentStore, *, goes_on: bool = False
) -> SetStates:
    """Return the state of a set as a stream has sent it so far.

    Args:
        number: of the set.
        sent: the id of the last event that was sent, by key of each member in the store.
        store: has the events.
        goes_on: a search made the members one after the other.
    """
    states = SetStates(number, sent)
    states.goes_on = goes_on
    for member, last in sent.items():
        for event in store.read_events(member, 0) if last else ():
            if event.id <= last:
                states.note_event(member, event)
    return states


async def _stream_new(
    reader: _StreamReader, subscription: Subscription, notifier: Notifier, heartbeat: float, *, follow: bool
) -> AsyncIterator[bytes]:
    """Yield entries until the last one, or without `follow` until there are no more, and pings while there are none."""
    sent_at = checked_at = time.monotonic()
    while not reader.complete:
        reader.mark_stale(subscription.take_changed())
        entries = reader.read_entries() if reader.is_quick() else await asyncio.to_thread(reader.read_entries)
        notifier.extend(subscription, reader.take_new())
        piece = b"".join(map(encode_entry, entries))
        is_late = time.monotonic() - sent_at >= heartbeat  # it reads lines that the client did not request
        if piece or is_late:
            yield piece or reader.encode_ping()
            sent_at = time.monotonic()
        if not reader.idle or reader.complete:
            continue
        if not follow:
            return
        patience = min(heartbeat, log_gate.PATIENCE) if reader.holds_event else heartbeat
        if not await subscription.wait_for_change(patience):
            sent_at = time.monotonic()
            if reader.holds_event or sent_at - checked_at >= _HEARTBEAT:  # in case a notification was missed
                reader.mark_stale(frozenset(reader.identities))
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


class _StreamReader:
    """Reads the experiments of one stream from their positions on."""

    def __init__(self, request: StreamRequest, experiments: ExperimentStore, logs: LogStore) -> None:
        self.idle = False  # everything that the last read found has been sent
        self.complete = False  # nothing more will follow
        self._request = request
        self._store = experiments
        self._logs = logs
        # Without its Z, so that it sorts before the fractions of the same second.
        self._since = "" if request.since is None else format_moment(request.since)[:-1]
        self._stale: frozenset[int] = frozenset()
        self._followed: list[FollowedLog] = []  # empty until the first read
        self._set_states: SetStates | None = None  # None: the stream is not that of a set
        self._grows = request.growth is not None  # further experiments may follow
        self._new: list[int] = []  # experiments that have joined the stream
        # the newest cursor that the client has; empty: it begins at the beginning
        self._sent_cursor = ",".join(map(str, request.positions)) if any(map(_is_inside, request.positions)) else ""

    @property
    def experiments(self) -> tuple[Experiment, ...]:
        """The records as of the last read."""
        return tuple(followed.record for followed in self._followed)

    @property
    def identities(self) -> tuple[int, ...]:
        """The keys of the experiments of the stream."""
        return tuple(followed.identity for followed in self._followed) or self._request.experiments

    def take_new(self) -> tuple[int, ...]:
        """Return the experiments that have joined the stream since the last call."""
        new, self._new = tuple(self._new), []
        return new

    @property
    def holds_event(self) -> bool:
        """True while an event waits for lines that belong before it, or a line for the start of its job."""
        return any(followed.events or followed.blocks for followed in self._followed)

    def mark_stale(self, changed: frozenset[int]) -> None:
        """Load the records of these experiments again before the next read."""
        self._stale |= changed

    def is_quick(self) -> bool:
        """Return True when a read needs no database, and only some kilobytes that another thread has just written:
        switching to another thread and back would take longer than such a read.
        """
        return (
            0 < len(self._followed) <= _FEW_LOGS
            and not self._stale
            and sum(self._count_unread(followed) for followed in self._followed) <= _QUICK_READ
        )

    def read_entries(self) -> list[wire.Entry]:
        """Return the next entries in the order of their times, as far as they are there."""
        self._load_records()
        # before the logs are read
        over = not self._grows and all(self._is_over(followed.record) for followed in self._followed)
        before = [followed.position for followed in self._followed]
        entries: list[wire.Entry] = []
        for entry in self._merge_experiments():
            entries.append(entry)
            self._sent_cursor = entry["cursor"]
        self.idle = before == [followed.position for followed in self._followed]
        self.complete = self.idle and over and not self.holds_event
        if self.complete and self._request.growth is not None and self._set_states is not None:
            end = self._set_states.note_end()
            entries += [] if end is None else [{**end, "cursor": self.cursor()}]
        if not over and not self.holds_event and not any(map(self._count_unread, self._followed)):
            self.idle = True  # another read would find nothing until the next notification
        return entries

    def _count_unread(self, followed: FollowedLog) -> int:
        """Return how many bytes of a log were not read yet."""
        return self._logs.log_size(followed.identity) - followed.read_end.offset

    def cursor(self) -> str:
        """Return what was sent as text."""
        return ",".join(str(followed.position) for followed in self._followed)

    def encode_ping(self) -> bytes:
        """Return an entry that only names what was read."""
        self._sent_cursor = self.cursor()
        return encode_ping(self._sent_cursor)

    def _load_records(self) -> None:
        """Load the records that may have changed; at the first read all of them."""
        if not self._followed:
            pairs = zip(self._request.experiments, self._request.positions, strict=True)
            self._followed = [self._load_followed(*pair) for pair in pairs]
            if self._followed[0].record.set_id is not None and self._request.canonical_id.sub is None:
                sent = {followed.identity: followed.position.event for followed in self._followed}
                self._set_states = load_set_states(
                    self._request.canonical_id.number, sent, self._store, goes_on=self._grows
                )
        else:
            for followed in self._followed:
                if followed.identity in self._stale:
                    fresh = self._load_followed(followed.identity, followed.position)
                    followed.record = fresh.record
                    followed.events = fresh.events
                    followed.ends = fresh.ends
        if self._grows and self._stale:
            self._load_growth()
        self._stale = frozenset()

    def _load_growth(self) -> None:
        """Let the experiments join that a search has made."""
        growth = self._request.growth
        self._grows = growth is not None and growth.goes_on()
        count = len(self._followed)
        for identity in () if growth is None else growth.list_members()[count:]:
            self._followed.append(self._load_followed(identity, StreamPosition()))
            self._new.append(identity)
            if self._set_states is not None:
                self._set_states.add_member(identity)
        if self._set_states is not None:
            self._set_states.goes_on = self._grows

    def _load_followed(self, identity: int, position: StreamPosition) -> FollowedLog:
        # read the record first: the lines before its close are in the log already
        record = self._store.get_experiment(identity).experiment
        events = deque(self._store.read_events(identity, position.event))
        return FollowedLog(
            identity, position, record, events, self._logs.find_job_ends(identity), position.log_position
        )

    def _merge_experiments(self) -> Iterator[wire.Entry]:
        """Yield the next entries of all experiments by time, until all of the lines read from one experiment are sent:
        then another read must come first.
        """
        for followed in self._followed:
            self._read_on(followed)
        if any(followed.is_read_up for followed in self._followed):
            return
        heads = [
            (head.time, number, head)
            for number, followed in enumerate(self._followed)
            if (head := self._find_head(followed))
        ]
        heapq.heapify(heads)
        while heads:
            _, number, head = heapq.heappop(heads)
            followed = self._followed[number]
            yield from self._send_head(followed, head, heads[0][0] if heads else "")
            if followed.is_read_up:
                return
            following = self._find_head(followed)
            if following is not None:
                heapq.heappush(heads, (following.time, number, following))

    def _read_on(self, followed: FollowedLog) -> None:
        """Read more of a log of which everything was sent."""
        if followed.blocks:
            return
        blocks, end = self._logs.read_blocks(followed.identity, followed.read_end, reports=self._request.reports)
        followed.may_have_more = end != followed.read_end
        followed.read_end = end
        followed.blocks.extend(blocks)
        if not blocks:
            followed.position = followed.position.with_log_position(end)

    def _find_head(self, followed: FollowedLog) -> StreamHead | None:
        """Return the next part of an experiment's stream: events and lines merged by time, each in its own order, so
        that a cursor can hold the position in both. None: nothing can be sent now.
        """
        event = followed.events[0] if followed.events else None
        block = followed.blocks[0] if followed.blocks else None
        has_more = block is not None or followed.may_have_more
        if event is not None and self._ask_gate(followed, event, has_more=has_more) is Gate.WAIT:
            event = None
        if block is None:
            return None if event is None else StreamHead(format_moment(event.at), is_event=True)
        waits = followed.waits_for_start(block, time.monotonic())
        if event is not None and (waits or followed.is_before(event, block)):
            return StreamHead(min(format_moment(event.at), block.first_at), is_event=True)
        if waits:
            return None
        return StreamHead(block.first_at, until="" if event is None else format_moment(event.at))

    def _send_head(self, followed: FollowedLog, head: StreamHead, limit: str) -> Iterator[wire.Entry]:
        """Send an event, or the lines before the next event and before `limit`, where another experiment comes next."""
        if head.is_event:
            yield from self._send_event(followed, followed.events.popleft())
            return
        block = followed.blocks.popleft()
        until = min(filter(None, (head.until, limit)), default="")
        if until:
            block, *later = split_at(block, until)
            followed.blocks.extendleft(later)
        if self._sends_together:
            block = self._join_blocks(followed, block, until)
        if self._request.canonical_id.names(block.job):
            yield from self._send_block(followed, block)
        followed.position = followed.position.with_log_position(block.end if followed.blocks else followed.read_end)

    @property
    def _sends_together(self) -> bool:
        """True when lines that follow each other go in one entry."""
        return self._request.batch and not self._since

    def _join_blocks(self, followed: FollowedLog, block: LogBlock, until: str) -> LogBlock:
        """Join the block with the following ones of the same job and stream: a job that prints its lines in pieces
        makes one block of each line, and an entry for each would cost the server and the client more than the line.

        An event that waits for the end of its job's log waits as long as lines before that end are there.
        """
        end = self._find_awaited_end(followed) if not until and followed.events else None
        joined = [block]
        while followed.blocks:
            following = followed.blocks[0]
            if (following.job, following.stream) != (block.job, block.stream) or _holds_report(block, following):
                break
            if end is not None and joined[-1].end.offset >= end:
                break
            if until and (following.count > 1 or following.first_at >= until):
                break
            joined.append(followed.blocks.popleft())
        return block if len(joined) == 1 else join_blocks(joined)

    def _find_awaited_end(self, followed: FollowedLog) -> int | None:
        """Return the offset after the last record of the job whose end is the next event; None: not known yet."""
        event = followed.events[0]
        return None if event.job is None else followed.ends.get((event.job, event.attempt))

    def _send_event(self, followed: FollowedLog, event: StateEvent) -> Iterator[wire.StateEntry]:
        """Yield the change of state, and the change of the set: a client that receives only the first gets both again,
        because its cursor is that of the entry before.
        """
        before = self._sent_cursor
        followed.position = replace(followed.position, event=event.id)
        followed.last_at = event.at
        of_set = self._set_states and self._set_states.note_event(followed.identity, event)
        if self._wants(event.job) and format_moment(event.at) >= self._since:
            yield state_entry(followed.record, event, before if of_set else self.cursor())
            if of_set:
                yield {**of_set, "cursor": self.cursor()}

    def _send_block(
        self, followed: FollowedLog, block: LogBlock
    ) -> Iterator[wire.LineEntry | wire.LinesEntry | wire.ReportEntry]:
        """Yield the lines as the client requested: together, or each with its own cursor. A line that ends with a
        report comes after the report: a client that receives only the first gets both again, because its cursor is
        that of the entry before.
        """
        if self._request.reports:
            yield from self._send_reports(followed, block)
            if block.is_report:
                return
        if self._sends_together:
            followed.position = followed.position.with_log_position(block.end)
            yield lines_entry(followed.record, block, self.cursor())
            return
        for line in block.lines():
            followed.position = followed.position.with_log_position(line.end)
            if line.at >= self._since:
                yield line_entry(followed.record, line, self.cursor())

    def _send_reports(self, followed: FollowedLog, block: LogBlock) -> Iterator[wire.ReportEntry]:
        """Yield each report of a block."""
        for report, line in zip(read_reports([block]), block.lines(), strict=False):
            if block.is_report:
                followed.position = followed.position.with_log_position(line.end)
            if report.values and report.at >= self._since:
                cursor = self.cursor() if block.is_report else self._sent_cursor
                yield report_entry(followed.record, report, cursor)

    def _ask_gate(self, followed: FollowedLog, event: StateEvent, *, has_more: bool) -> Gate:
        """Return the decision of the gate, from the present state of the job's log."""
        moment = time.monotonic()
        if has_more or followed.waiting_event != event.id:
            followed.waiting_event = event.id
            followed.waiting_since = moment
        log = LogState(
            sent=followed.position.offset,
            end=None if event.job is None else followed.ends.get((event.job, event.attempt)),
            has_more=has_more,
            is_closed=followed.record.closed,
            has_started=has_started(followed.record, event),
            age=(now() - event.at).total_seconds(),
            quiet=moment - followed.waiting_since,
        )
        return gate(event, log)

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

    def _wants(self, job: JobName | None) -> bool:
        return self._request.canonical_id.job is None if job is None else self._request.canonical_id.names(job)


@dataclass(frozen=True, slots=True)
class _MemberState:
    """The state of one member as the stream has sent it."""

    state: State = State.CREATED
    reason: Reason = Reason.SUBMITTED
    started_at: datetime | None = None


def _is_inside(position: StreamPosition) -> bool:
    return position != StreamPosition()


def _holds_report(*blocks: LogBlock) -> bool:
    return any(block.is_report or block.report for block in blocks)


def _read_tail(reader: _StreamReader, tail: int) -> list[wire.LineEntry | wire.LinesEntry]:
    """Return the last `tail` lines of the store; the reader continues after them."""
    last = LastLines(tail)
    while not reader.idle:
        last.add_entries(reader.read_entries())
    return list(last.entries)
