"""The entries of a log stream, one JSON document a line. `type` tells them apart.

`cursor` names everything up to and including its entry; a request with that cursor continues after it.
"""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from riseml.wire.state_names import StateName


class StateEntry(TypedDict):
    """A job, the experiment or the set enters a state."""

    type: Literal["state"]
    cursor: str
    id: str  # ID of the experiment, the job or the set
    time: str  # RFC 3339 with fractions of a second
    state: StateName
    reason: str  # name of a Reason
    sentence: str  # the reason for people
    message: str  # details; may be empty or have several lines
    exit_code: int | None  # exit code of a job that ended


class LineEntry(TypedDict):
    """One line of output."""

    type: Literal["line"]
    cursor: str
    id: str  # ID of the job
    time: str  # RFC 3339 with fractions of a second: when the job printed it
    stream: Literal["stdout", "stderr", "engine"]  # engine: a message of the engine or of riseml about the job
    text: str  # without its newline; bytes that are not UTF-8 are replaced


class LinesEntry(TypedDict):
    """Consecutive lines of one job, sent instead of `LineEntry` when the request says `batch`."""

    type: Literal["lines"]
    cursor: str
    id: str  # ID of the job
    stream: Literal["stdout", "stderr", "engine"]
    text: str  # each line as `<time> <text>\n`


class ReportEntry(TypedDict):
    """One report of a job; sent when the request says `reports`."""

    type: Literal["report"]
    cursor: str
    id: str  # ID of the job
    time: str  # RFC 3339 with fractions of a second
    step: int | None  # null: reported without a step
    values: dict[str, float | str]  # by metric; what is not finite is "nan", "inf" or "-inf"


class EndEntry(TypedDict):
    """The stream is complete: no entry follows, and no job of the experiment runs.

    Its containers and networks are removed, too, unless the request said `closed=false`.
    """

    type: Literal["end"]
    cursor: str
    id: str  # ID of the experiment or the set
    state: StateName
    exit_code: int | None  # exit code of the job that decided the end
    reason: str  # name of a Reason
    message: str  # the reason for people
    cause: str | None  # the job whose failure ended it; of a failed set, one for the usual cause: `3.worker.1`


class PingEntry(TypedDict):
    """Sent after 15 s without another entry, so that a client notices a dead connection, and once after a `tail`."""

    type: Literal["ping"]
    cursor: str


Entry = StateEntry | LineEntry | LinesEntry | ReportEntry | EndEntry | PingEntry
