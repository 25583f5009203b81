"""The merge of a stream: the order of what was read of several experiments. Pure: it reads no store and no clock.

A reader fills each `FollowedLog` with events and blocks of lines. `StreamMerge.merge` turns them into entries, as far
as their order is certain, and notes the position up to which everything was sent.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime

from riseml import wire
from riseml.base.names import JobName
from riseml.base.records import dataclass
from riseml.base.states import JobDuty, State
from riseml.model import Experiment
from riseml.server.api.merged_log import event_order
from riseml.server.api.merged_log.event_order import EventDecision, LogState, decide_event, has_started
from riseml.server.api.merged_log.log_entries import (
    format_moment,
    line_entry,
    lines_entry,
    report_entry,
    split_at,
    state_entry,
)
from riseml.server.api.merged_log.set_states import SetStates
from riseml.server.api.merged_log.stream_cursor import StreamPosition
from riseml.server.api.merged_log.stream_request import StreamRequest
from riseml.store.experiments import StateEvent
from riseml.store.logs.blocks import LogBlock, join_blocks
from riseml.store.logs.read_position import ReadPosition
from riseml.store.metrics.metric_tally import read_reports


@dataclass(frozen=True, slots=True)
class ReadTime:
    """When a reader has read: on the monotonic clock in seconds, and as a date."""

    monotonic: float
    utc: datetime


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
    _formatted: tuple[StreamPosition, str] | None = None  # the last position that was written as text, and that

    @property
    def position_text(self) -> str:
        """The position as text; a cursor of a set has hundreds, and few of them change."""
        if self._formatted is None or self._formatted[0] is not self.position:
            self._formatted = (self.position, str(self.position))
        return self._formatted[1]

    def add_blocks(self, blocks: Sequence[LogBlock], end: ReadPosition) -> None:
        """Take the blocks that were read from `read_end` to `end`; none: nothing that could be sent was there."""
        self.may_have_more = end != self.read_end
        self.read_end = end
        self.blocks.extend(blocks)
        if not blocks:
            self.position = self.position.with_log_position(end)

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
        return moment - self.held_since < event_order.PATIENCE


@dataclass(frozen=True, slots=True, order=True)
class StreamHead:
    """The next part of an experiment's stream: an event or lines."""

    time: str
    is_event: bool = False  # False: lines
    until: str = ""  # when the next event happened; empty: no event


class StreamMerge:
    """Merges what was read of the experiments of one stream.

    Args:
        request: of the client.

    Attributes:
        followed: the experiments, in the order of the positions of a cursor.
        unfinished: those of them of which something may follow; a search may have made hundreds that have ended.
        set_states: the states of the set; None: the stream is not that of a set.
        sent_cursor: the newest cursor that the client has; empty: it begins at the beginning.

    Example:
        merge = StreamMerge(request)
        merge.followed.append(followed)  # with its events and blocks
        merge.unfinished.append(followed)
        entries = list(merge.merge(ReadTime(time.monotonic(), now())))
    """

    def __init__(self, request: StreamRequest) -> None:
        self.followed: list[FollowedLog] = []
        self.unfinished: list[FollowedLog] = []
        self.set_states: SetStates | None = None
        self.sent_cursor = ",".join(map(str, request.positions)) if any(map(_is_inside, request.positions)) else ""
        self._request = request
        # Without its Z, so that it sorts before the fractions of the same second.
        self._since = "" if request.since is None else format_moment(request.since)[:-1]

    @property
    def holds_event(self) -> bool:
        """True while an event waits for lines that belong before it, or a line for the start of its job."""
        return any(followed.events or followed.blocks for followed in self.unfinished)

    def cursor(self) -> str:
        """Return what was sent as text."""
        return ",".join([followed.position_text for followed in self.followed])

    def merge(self, time: ReadTime) -> Iterator[wire.Entry]:
        """Yield the next entries of all experiments by time, until all of the lines read from one experiment are sent:
        then another read must come first.
        """
        for entry in self._merge_experiments(time):
            self.sent_cursor = entry["cursor"]
            yield entry

    def _merge_experiments(self, time: ReadTime) -> Iterator[wire.Entry]:
        if any(followed.is_read_up for followed in self.unfinished):
            return
        heads = [
            (head.time, number, head)
            for number, followed in enumerate(self.unfinished)
            if (head := self._find_head(followed, time))
        ]
        heapq.heapify(heads)
        while heads:
            _, number, head = heapq.heappop(heads)
            followed = self.unfinished[number]
            yield from self._send_head(followed, head, heads[0][0] if heads else "")
            if followed.is_read_up:
                return
            following = self._find_head(followed, time)
            if following is not None:
                heapq.heappush(heads, (following.time, number, following))

    def _find_head(self, followed: FollowedLog, time: ReadTime) -> StreamHead | None:
        """Return the next part of an experiment's stream: events and lines merged by time, each in its own order, so
        that a cursor can hold the position in both. None: nothing can be sent now.
        """
        event = followed.events[0] if followed.events else None
        block = followed.blocks[0] if followed.blocks else None
        has_more = block is not None or followed.may_have_more
        if event is not None and self._decide_event(followed, event, time, has_more=has_more) is EventDecision.WAIT:
            event = None
        if block is None:
            return None if event is None else StreamHead(format_moment(event.at), is_event=True)
        waits = followed.waits_for_start(block, time.monotonic)
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
        before = self.sent_cursor
        followed.position = replace(followed.position, event=event.id)
        followed.last_at = event.at
        of_set = self.set_states and self.set_states.note_event(followed.identity, event)
        if self._wants(event.job) and format_moment(event.at) >= self._since:
            yield state_entry(followed.record, event, before if of_set else self.cursor(), self._request.reader)
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
            yield lines_entry(followed.record, block, self.cursor(), self._request.reader)
            return
        for line in block.lines():
            followed.position = followed.position.with_log_position(line.end)
            if line.at >= self._since:
                yield line_entry(followed.record, line, self.cursor(), self._request.reader)

    def _send_reports(self, followed: FollowedLog, block: LogBlock) -> Iterator[wire.ReportEntry]:
        """Yield each report of a block."""
        for report, line in zip(read_reports([block]), block.lines(), strict=False):
            if block.is_report:
                followed.position = followed.position.with_log_position(line.end)
            if report.values and line.at >= self._since:
                cursor = self.cursor() if block.is_report else self.sent_cursor
                yield report_entry(followed.record, report, cursor, self._request.reader)

    def _decide_event(
        self, followed: FollowedLog, event: StateEvent, time: ReadTime, *, has_more: bool
    ) -> EventDecision:
        """Return whether an event is sent now, from the present state of the job's log."""
        if has_more or followed.waiting_event != event.id:
            followed.waiting_event = event.id
            followed.waiting_since = time.monotonic
        log = LogState(
            sent=followed.position.offset,
            end=None if event.job is None else followed.ends.get((event.job, event.attempt)),
            has_more=has_more,
            is_closed=followed.record.closed,
            has_started=has_started(followed.record, event),
            age=(time.utc - event.at).total_seconds(),
            quiet=time.monotonic - followed.waiting_since,
        )
        return decide_event(event, log)

    def _wants(self, job: JobName | None) -> bool:
        return self._request.canonical_id.job is None if job is None else self._request.canonical_id.names(job)


def _is_inside(position: StreamPosition) -> bool:
    return position != StreamPosition()


def _holds_report(*blocks: LogBlock) -> bool:
    return any(block.is_report or block.report for block in blocks)
