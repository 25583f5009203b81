"""The web page: its listener, the feed of changes, and pages of a log."""

from __future__ import annotations

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from riseml.wire.state_names import StateName


class WebRequest(TypedDict):
    """A request to open the web page."""

    port: NotRequired[int]  # where to listen; missing: where it listened before, else anywhere


class WebView(TypedDict):
    """The listener of the web page."""

    open: bool
    port: int | None  # where it listens at 127.0.0.1; null: nowhere
    url: str | None  # opens a session once, within ten minutes; null: it is closed


class WebSessionView(TypedDict):
    """A session of a browser."""

    id: str
    opened_at: str
    until: str


class WebSessions(TypedDict):
    """The sessions of the web page."""

    sessions: list[WebSessionView]  # the oldest first


class ProxiedAppAddress(TypedDict):
    """Where a browser sees the TensorBoard of an experiment."""

    url: str  # leads one browser there, once, within a minute


class Changes(TypedDict):
    """What has changed since the message before; an event of the feed."""

    changed: list[str]  # IDs of experiments whose records changed: `4`, `144.1`
    grown: list[str]  # IDs of experiments whose logs have grown
    reset: bool  # more may have changed than these: read everything again


class NumberedLine(TypedDict):
    """One line of a log, with its number."""

    number: int  # 0 is the first line of the log, or of the requested jobs and level
    whole: int  # its number among the lines of all levels
    id: str  # ID of the job
    time: str  # RFC 3339 with fractions of a second
    stream: Literal["stdout", "stderr", "engine"]
    text: str  # without its newline


class LinePage(TypedDict):
    """Some lines of a log that follow each other."""

    total: int  # complete lines that the log has now
    lines: list[NumberedLine]  # fewer than requested when they are long, or at the end


class LineMatches(TypedDict):
    """Where a text is in a log."""

    total: int  # complete lines that the log has now
    matches: list[int]  # numbers of lines, ascending
    next: int | None  # where to search on; null: the whole log was searched


class EventView(TypedDict):
    """A job or its experiment entered a state."""

    id: str  # ID of the experiment or the job
    time: str  # RFC 3339 with fractions of a second
    state: StateName
    reason: str  # name of a Reason
    sentence: str  # the reason for people
    message: str  # details; may be empty or have several lines
    attempt: int  # attempt of the job; 1 for the experiment


class EventList(TypedDict):
    """The life of an experiment and its jobs."""

    events: list[EventView]  # oldest first
