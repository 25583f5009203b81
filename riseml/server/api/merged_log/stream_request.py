"""What a client requests of a log."""

from __future__ import annotations

from datetime import datetime

from riseml.base.names import CanonicalId
from riseml.base.records import dataclass
from riseml.server.api.merged_log.set_growth import SetGrowth
from riseml.server.api.merged_log.stream_cursor import StreamPosition

LONGEST_HEARTBEAT = 15.0
"""Seconds between two entries of a log, at most, for a client that asks for nothing else."""


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """The stream that a client requests."""

    canonical_id: CanonicalId  # an experiment, a set or jobs of one
    experiments: tuple[int, ...]  # keys in the store
    follow: bool  # False: the stream ends when everything in the store has been sent
    positions: tuple[StreamPosition, ...]  # where to begin, one for each experiment
    tail: int | None = None  # send only this many of the last lines in the store, and no change of state
    since: datetime | None = None  # send nothing older
    batch: bool = False  # several successive lines may share an entry
    growth: SetGrowth | None = None  # the growth of a whole set with a search; None: no members will be added
    # end when the experiment is closed; False: end when all jobs have ended and all lines were sent
    closed: bool = True
    reports: bool = False  # send reports of metrics, too
    heartbeat: float = LONGEST_HEARTBEAT  # seconds between two entries at most
    reader: str | None = None  # the user of the request; None: that of the experiments
