"""One experiment of the merged stream: what was read but not sent, and what follows next."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime

from riseml.base.names import JobName
from riseml.base.records import dataclass
from riseml.base.states import Part, State
from riseml.model import Experiment
from riseml.server.api.merged_log import log_gate
from riseml.server.api.merged_log.log_entries import format_moment
from riseml.server.api.merged_log.stream_cursor import StreamPosition
from riseml.store.experiments import StateEvent
from riseml.store.logs.blocks import LogBlock
from riseml.store.logs.read_position import ReadPosition


@dataclass(slots=True)
class FollowedLog:
    """One experiment of the stream."""

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
        if job is None or job.part is Part.PREPARES or job.attempt > 1 or job.state is not State.STARTING:
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
